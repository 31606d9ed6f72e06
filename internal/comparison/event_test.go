package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// TestLargestEvent checks that the largest batch makes the largest event that Lambda takes, or nearly so.
func TestLargestEvent(t *testing.T) {
	bytes, err := writeEvents(filepath.Join(t.TempDir(), "events.json"), 1, 1, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	if bytes < 5_900_000 || bytes > 6<<20 {
		t.Errorf("an event of 10,000 records has %d bytes, want about 6 MB", bytes)
	}
}

func TestEventsHaveDistinctMessages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.json")
	if _, err := writeEvents(file, 7, 3, 20); err != nil {
		t.Fatal(err)
	}
	payloads, err := lines(file)
	if err != nil || len(payloads) != 3 {
		t.Fatalf("%d events, error %v; want 3", len(payloads), err)
	}
	seen := map[string]bool{}
	for i, payload := range payloads {
		var event events.SQSEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			t.Fatal(err)
		}
		for j, m := range event.Records {
			var o order
			if err := json.Unmarshal([]byte(m.Body), &o); err != nil || o.ID == "" {
				t.Errorf("body is %q, error %v; want an order", m.Body, err)
			}
			if want := messageID(7+i, j); m.MessageId != want || seen[m.MessageId] {
				t.Errorf("messageId of message %d of batch %d is %s, want %s, and no other one like it", j, 7+i, m.MessageId, want)
			}
			seen[m.MessageId] = true
		}
	}
	if len(seen) != 60 {
		t.Errorf("%d messages, want 60", len(seen))
	}
}
