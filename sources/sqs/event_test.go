package sqs_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

const (
	standardARN = "arn:aws:sqs:us-east-2:123456789012:orders"
	fifoARN     = "arn:aws:sqs:us-east-2:123456789012:orders.fifo"
)

// message describes a message of a test event. What is left out is as AWS would give it.
type message struct {
	ID, Body, Group string
	ARN             string    // standardARN
	Handle          string    // "handle of " and the ID
	Receives        int       // 1
	Sent            time.Time // now
}

// record returns the message as JSON, with every member that AWS sends.
func (m message) record() string {
	if m.ARN == "" {
		m.ARN = standardARN
	}
	if m.Handle == "" {
		m.Handle = "handle of " + m.ID
	}
	if m.Sent.IsZero() {
		m.Sent = time.Now()
	}
	attributes := map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(max(m.Receives, 1)),
		"SentTimestamp":                    strconv.FormatInt(m.Sent.UnixMilli(), 10),
		"SenderId":                         "AIDAIENQZJOLO23YVJ4VO",
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.Sent.UnixMilli()+2, 10),
	}
	if m.Group != "" {
		attributes["MessageGroupId"] = m.Group
	}
	record, err := json.Marshal(map[string]any{
		"messageId": m.ID, "receiptHandle": m.Handle, "body": m.Body, "attributes": attributes,
		"messageAttributes": map[string]any{}, "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
		"eventSource": "aws:sqs", "eventSourceARN": m.ARN, "awsRegion": "us-east-2",
	})
	if err != nil {
		panic(err)
	}
	return string(record)
}

func event(messages ...message) []byte {
	records := make([]string, len(messages))
	for i, m := range messages {
		records[i] = m.record()
	}
	return rawEvent(records...)
}

// rawEvent returns an event of records that are JSON already.
func rawEvent(records ...string) []byte {
	return []byte(`{"Records":[` + strings.Join(records, ",") + `]}`)
}

// numbered returns messages m1 to m<n>, whose bodies are their IDs.
func numbered(n int) []message {
	messages := make([]message, n)
	for i := range messages {
		id := "m" + strconv.Itoa(i+1)
		messages[i] = message{ID: id, Body: id}
	}
	return messages
}

// grouped returns messages of a FIFO queue, whose groups are the first letters of their IDs.
func grouped(ids ...string) []message {
	messages := make([]message, len(ids))
	for i, id := range ids {
		messages[i] = message{ID: id, Body: id, Group: id[:1], ARN: fifoARN}
	}
	return messages
}

// answer returns the identifiers of a partial batch response, and checks the names in it.
func answer(t tb, response []byte) []string {
	t.Helper()
	var decoded struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(response, &decoded); err != nil {
		t.Fatalf("answer %s: %v", response, err)
	}
	ids := []string{}
	for _, item := range decoded.BatchItemFailures {
		ids = append(ids, item.ItemIdentifier)
	}
	// Names in another case would decode too. See TestAnswerBytes for the rest.
	text := string(response)
	if !strings.HasPrefix(text, `{"batchItemFailures":[`) || strings.Count(text, `{"itemIdentifier":"`) < len(ids) {
		t.Errorf("answer is %s, want it spelled as Lambda spells it", response)
	}
	return ids
}
