package kinesis_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/kpl"
)

const (
	clicksARN   = "arn:aws:kinesis:us-east-2:123456789012:stream/clicks"
	consumerARN = clicksARN + "/consumer/clicks-consumer:1577836800"
	shardID     = "shardId-000000000006"
	otherShard  = "shardId-000000000007"
)

// sequence returns the sequence number of a test event's record n, with 56 digits as real ones have (case 8).
func sequence(n int) string {
	return fmt.Sprintf("495903382714902566085596925383615710959215759%011d", n)
}

// eventID is that of record n of the shard.
func eventID(n int) string { return shardID + ":" + sequence(n) }

// keyOf is the guard's key of record n, and, where parts are given, of what is in it.
func keyOf(n int, parts ...string) string {
	return idempotency.JoinKey(append([]string{clicksARN, eventID(n)}, parts...)...)
}

// record describes a record of a test event. What is left out is as AWS would give it.
type record struct {
	Data  string // not yet in base64
	Key   string // the partition key
	N     int    // of the sequence number
	Shard string // shardID
	ARN   string // clicksARN
	At    time.Time
}

// json returns the record with every member that AWS sends.
func (r record) json() string {
	if r.Shard == "" {
		r.Shard = shardID
	}
	if r.ARN == "" {
		r.ARN = clicksARN
	}
	if r.At.IsZero() {
		r.At = time.Now()
	}
	text, err := json.Marshal(map[string]any{
		"kinesis": map[string]any{
			"kinesisSchemaVersion": "1.0", "partitionKey": r.Key, "sequenceNumber": sequence(r.N),
			"data":                        base64.StdEncoding.EncodeToString([]byte(r.Data)),
			"approximateArrivalTimestamp": json.Number(strconv.FormatFloat(float64(r.At.UnixMilli())/1000, 'f', 3, 64)),
		},
		"eventSource": "aws:kinesis", "eventVersion": "1.0", "eventID": r.Shard + ":" + sequence(r.N),
		"eventName": "aws:kinesis:record", "invokeIdentityArn": "arn:aws:iam::123456789012:role/lambda-role",
		"awsRegion": "us-east-2", "eventSourceARN": r.ARN,
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

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

// keyed returns records 0, 1, ... with these data, whose partition keys are the data's first letters.
func keyed(data ...string) []record {
	records := make([]record, len(data))
	for i, d := range data {
		records[i] = record{Data: d, Key: d[:1], N: i}
	}
	return records
}

// numbered returns n records with partition keys of their own, and with the data "r0", "r1", ...
func numbered(n int) []record {
	records := make([]record, n)
	for i := range records {
		data := "r" + strconv.Itoa(i)
		records[i] = record{Data: data, Key: "key of " + data, N: i}
	}
	return records
}

// aggregate returns the data of a KPL aggregate of records with these data, whose partition keys are their first letters.
func aggregate(data ...string) string {
	records := make([]kpl.UserRecord, len(data))
	for i, d := range data {
		records[i] = kpl.UserRecord{PartitionKey: d[:1], Data: []byte(d)}
	}
	return string(kpl.Append(nil, records))
}

// change returns the record as JSON with each old part replaced, which it must have.
func change(r record, oldNew ...string) string {
	text := r.json()
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(text, oldNew[i]) {
			panic("no " + oldNew[i] + " in " + text)
		}
		text = strings.ReplaceAll(text, oldNew[i], oldNew[i+1])
	}
	return text
}

// answer is the partial batch response that names one sequence number, or none.
func answer(number string) string {
	if number == "" {
		return `{"batchItemFailures":[]}`
	}
	return `{"batchItemFailures":[{"itemIdentifier":"` + number + `"}]}`
}

// aggregateOf returns the data of a KPL aggregate of one record, whose partition key is "k".
func aggregateOf(data string) string {
	return string(kpl.Append(nil, []kpl.UserRecord{{PartitionKey: "k", Data: []byte(data)}}))
}
