package byhand

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
)

// diary takes down the clicks that it appends, and fails some.
type diary struct{ fails, appended []string }

func (d *diary) Append(_ context.Context, c site.Click) error {
	if slices.Contains(d.fails, c.ID) {
		return errors.New("no")
	}
	d.appended = append(d.appended, c.ID)
	return nil
}

// TestLoop has two aggregates of two clicks with a plain record between them, and something that is no click at the end.
func TestLoop(t *testing.T) {
	stream, err := kinesistest.NewStream("clicks")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	click := func(id string) kinesistest.Record {
		return kinesistest.Record{PartitionKey: "ada", Data: []byte(`{"id":"` + id + `"}`)}
	}
	for _, records := range [][]kinesistest.Record{
		{click("1"), click("2")}, {click("3")}, {click("4"), click("5")}, {{PartitionKey: "ada", Data: []byte("{")}},
	} {
		if _, _, err := stream.PutAggregated(records...); err != nil {
			t.Fatal(err)
		}
	}
	var event events.KinesisEvent
	var numbers []string
	for _, h := range stream.Histories() {
		event.Records = append(event.Records, h.Record)
		numbers = append(numbers, h.SequenceNumber)
	}
	for _, test := range []struct {
		name     string
		stop     bool
		fails    []string
		appended []string
		failed   []string
	}{
		{name: "goes on", fails: []string{"1", "4"}, appended: []string{"2", "3", "5"}, failed: []string{numbers[0], numbers[2], numbers[3]}},
		{name: "stops", stop: true, fails: []string{"2"}, appended: []string{"1"}, failed: numbers[:1]},
		{name: "stops at what is no click", stop: true, appended: []string{"1", "2", "3", "4", "5"}, failed: numbers[3:]},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := &diary{fails: test.fails}
			answer, err := Loop{Journeys: d, StopAtFailure: test.stop}.Invoke(t.Context(), kinesistest.Payload(event))
			if err != nil {
				t.Fatal(err)
			}
			var response events.KinesisEventResponse
			if err := json.Unmarshal(answer, &response); err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, f := range response.BatchItemFailures {
				failed = append(failed, f.ItemIdentifier)
			}
			if diff := cmp.Diff(test.failed, failed); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.appended, d.appended); diff != "" {
				t.Errorf("appended (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoAggregates has what begins like an aggregate and is none, so that it is a record as it stands.
func TestNoAggregates(t *testing.T) {
	for _, data := range []string{"", "{}", string(magic), string(magic) + "0123456789012345", string(magic) + "01234567890123456789"} {
		got, err := split([]byte(data))
		if diff := cmp.Diff([][]byte{[]byte(data)}, got); diff != "" || err != nil {
			t.Errorf("%q: error %v, records (-want +got):\n%s", data, err, diff)
		}
	}
}

// TestBrokenAggregate has the right digest around something that is no message.
func TestBrokenAggregate(t *testing.T) {
	for _, message := range []string{"\xff", "\x1a\x05ab", "\x1a\x02\x1a\x05"} {
		sum := md5.Sum([]byte(message))
		if got, err := split([]byte(string(magic) + message + string(sum[:]))); err == nil {
			t.Errorf("%q: records %q, want an error", message, got)
		}
	}
}
