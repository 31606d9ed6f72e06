package dynamodbstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Handle is Invoke with the types of aws-lambda-go, as far as these can have the state.
func TestWindowHandle(t *testing.T) {
	type notes map[string]string
	fold := func(_ context.Context, s notes, c *dynamodbstream.Change[order]) (notes, error) {
		s[c.Keys.ID] = note(c)
		if note(c) == "fails" {
			return nil, errors.New("no")
		}
		return s, nil
	}
	var got []dynamodbstream.Window[notes]
	h := newWindowHandler(t, fold, func(_ context.Context, w *dynamodbstream.Window[notes]) error {
		got = append(got, *w)
		return nil
	})
	var in events.DynamoDBTimeWindowEvent
	records := noted("a0", "b1", "c2")
	records[1].Note = "fails"
	if err := json.Unmarshal(window{State: `{"z":"z9"}`, Final: true}.event(texts(records)...), &in); err != nil {
		t.Fatal(err)
	}
	response, err := h.Handle(t.Context(), in)
	want := events.DynamoDBTimeWindowEventResponse{
		TimeWindowEventResponseProperties: events.TimeWindowEventResponseProperties{State: map[string]string{"a": "a0", "z": "z9"}},
		BatchItemFailures:                 []events.DynamoDBBatchItemFailure{{ItemIdentifier: sequence(1)}},
	}
	if diff := cmp.Diff(want, response); err != nil || diff != "" {
		t.Errorf("error is %v, response (-want +got):\n%s", err, diff)
	}
	if len(got) != 0 {
		t.Errorf("windows finished: %+v, want none", got)
	}
	in.Records = in.Records[:1]
	response, err = h.Handle(t.Context(), in)
	want.BatchItemFailures = []events.DynamoDBBatchItemFailure{}
	if diff := cmp.Diff(want, response); err != nil || diff != "" {
		t.Errorf("error is %v, response of success (-want +got):\n%s", err, diff)
	}
	wantWindow := []dynamodbstream.Window[notes]{{
		State: notes{"a": "a0", "z": "z9"}, Start: time.Date(2026, 12, 1, 7, 4, 0, 0, time.UTC), End: time.Date(2026, 12, 1, 7, 6, 0, 0, time.UTC),
		ShardID: shardID, StreamARN: ordersARN,
	}}
	if diff := cmp.Diff(wantWindow, got); diff != "" {
		t.Errorf("windows finished (-want +got):\n%s", diff)
	}
	in.Records = nil // a window can end without records
	if _, err = h.Handle(t.Context(), in); err != nil || len(got) != 2 {
		t.Errorf("error of an end without records is %v, %d windows finished, want 2", err, len(got))
	}
}

func TestWindowHandleErrors(t *testing.T) {
	h := newWindowHandler(t, count, finishNothing)
	_, err := h.Handle(t.Context(), events.DynamoDBTimeWindowEvent{})
	wantError(t, err, "dynamodbstream: event has a window's state that is null, want an object")
	var in events.DynamoDBTimeWindowEvent
	if err := json.Unmarshal(window{}.event(texts(noted("a0"))...), &in); err != nil {
		t.Fatal(err)
	}
	_, err = h.Handle(t.Context(), in)
	wantError(t, err, "dynamodbstream: answer does not fit aws-lambda-go's type, use Invoke")
	in.Records[0].Change.NewImage = map[string]events.DynamoDBAttributeValue{"x": {}}
	_, err = h.Handle(t.Context(), in)
	wantError(t, err, "dynamodbstream: event: ", "want attribute values made by the functions of package events")
}
