package dynamodbstream_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

const (
	ordersARN = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-12-01T00:00:00.000"
	otherARN  = "arn:aws:dynamodb:us-east-1:123456789012:table/others/stream/2026-12-01T00:00:00.000"
)

// order is the item that tests have in their table.
type order struct {
	ID   string `dynamodbav:"id"`
	Note string `dynamodbav:"note"`
}

// sequence returns the sequence number of a test event's record n, with 25 digits as real ones have.
func sequence(n int) string { return fmt.Sprintf("14054000000000020632%05d", n) }

// eventID is that of record n.
func eventID(n int) string { return fmt.Sprintf("f07f8ca4b0b26cb9c4e5e77e%08x", n) }

// keyOf is the guard's key of record n.
func keyOf(n int) string { return idempotency.JoinKey(ordersARN, eventID(n)) }

// record describes a change of an order in a test event. What is left out is as AWS would give it.
type record struct {
	ID        string // the item's
	Note      string // of the new image, and of the old one if the change is a REMOVE
	N         int    // of the sequence number and the eventID
	Operation string // MODIFY
	ARN       string // ordersARN
	At        time.Time
}

// json returns the record with every member that AWS sends.
func (r record) json() string {
	if r.Operation == "" {
		r.Operation = "MODIFY"
	}
	if r.ARN == "" {
		r.ARN = ordersARN
	}
	if r.At.IsZero() {
		r.At = time.Now()
	}
	type value map[string]string
	keys := map[string]value{"id": {"S": r.ID}}
	image := map[string]value{"id": {"S": r.ID}, "note": {"S": r.Note}}
	change := map[string]any{
		"ApproximateCreationDateTime": r.At.Unix(), "Keys": keys, "SequenceNumber": sequence(r.N), "SizeBytes": 54,
		"StreamViewType": "NEW_AND_OLD_IMAGES",
	}
	if r.Operation != "INSERT" {
		change["OldImage"] = image
	}
	if r.Operation != "REMOVE" {
		change["NewImage"] = image
	}
	text, err := json.Marshal(map[string]any{
		"eventID": eventID(r.N), "eventName": r.Operation, "eventVersion": "1.1", "eventSource": "aws:dynamodb",
		"awsRegion": "us-east-1", "dynamodb": change, "eventSourceARN": r.ARN,
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// change returns the record as JSON with each old part replaced, which it must have.
func (r record) change(oldNew ...string) string {
	text := r.json()
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(text, oldNew[i]) {
			panic("no " + oldNew[i] + " in " + text)
		}
		text = strings.ReplaceAll(text, oldNew[i], oldNew[i+1])
	}
	return text
}

// withoutKeys returns the record as JSON without the keys of its item.
func (r record) withoutKeys() string { return r.change(`"Keys":{"id":{"S":"`+r.ID+`"}},`, "") }

// undecodable returns the record as JSON with an image that is none.
func (r record) undecodable() string { return r.change(`"note":{"S":`, `"note":{"BOOL":`) }

func event(records ...record) []byte {
	texts := make([]string, len(records))
	for i, r := range records {
		texts[i] = r.json()
	}
	return rawEvent(texts...)
}

// rawEvent returns an event of records that are JSON already.
func rawEvent(records ...string) []byte {
	return []byte(`{"Records":[` + strings.Join(records, ",") + `]}`)
}

// noted returns records 0, 1, ... with these notes, of items that are named by the notes' first letters.
func noted(notes ...string) []record {
	records := make([]record, len(notes))
	for i, n := range notes {
		records[i] = record{ID: n[:1], Note: n, N: i}
	}
	return records
}

// numbered returns n records of items of their own, with the notes "r0", "r1", ...
func numbered(n int) []record {
	records := make([]record, n)
	for i := range records {
		note := fmt.Sprint("r", i)
		records[i] = record{ID: "item " + note, Note: note, N: i}
	}
	return records
}

// answer is the partial batch response that names one sequence number, or none.
func answer(number string) string {
	if number == "" {
		return `{"batchItemFailures":[]}`
	}
	return `{"batchItemFailures":[{"itemIdentifier":"` + number + `"}]}`
}
