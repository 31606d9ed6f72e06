package dynamodbstream_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// seen is what a handler sees of a change.
type seen struct {
	Operation dynamodbstream.Operation
	Keys      order
	Old, New  *order
	ByTTL     bool
}

// The handler sees what was done to the item, by whom, and its images. A deletion by TTL is one by DynamoDB.
func TestHandlerSeesTheChange(t *testing.T) {
	const service = `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`
	change := func(operation, userIdentity string) string {
		return record{ID: "a", Note: "n", Operation: operation}.change(`"eventVersion":`, `"userIdentity":`+userIdentity+`,"eventVersion":`)
	}
	keys, image := order{ID: "a"}, &order{ID: "a", Note: "n"}
	for _, test := range []struct {
		name, record string
		want         seen
	}{
		{"insert", change("INSERT", "null"), seen{dynamodbstream.Insert, keys, nil, image, false}},
		{"modify", change("MODIFY", "null"), seen{dynamodbstream.Modify, keys, image, image, false}},
		{"remove", change("REMOVE", "null"), seen{dynamodbstream.Remove, keys, image, nil, false}},
		{"remove by a user", change("REMOVE", `{"type":"AWS","principalId":"dynamodb.amazonaws.com"}`), seen{dynamodbstream.Remove, keys, image, nil, false}},
		{"remove by another service", change("REMOVE", `{"type":"Service","principalId":"x"}`), seen{dynamodbstream.Remove, keys, image, nil, false}},
		{"remove by TTL", change("REMOVE", service), seen{dynamodbstream.Remove, keys, image, nil, true}},
		{"an insert by the service is none", change("INSERT", service), seen{dynamodbstream.Insert, keys, nil, image, false}},
		{"keys only", record{ID: "a", Note: "n", Operation: "REMOVE"}.change(`"OldImage":{"id":{"S":"a"},"note":{"S":"n"}},`, ""),
			seen{dynamodbstream.Remove, keys, nil, nil, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, _ bool, options func(*dynamodbstream.Options)) {
				var got seen
				h := newHandler(t, func(_ context.Context, c *dynamodbstream.Change[order]) error {
					got = seen{c.Operation(), c.Keys, c.Old, c.New, c.ByTTL()}
					return nil
				}, options)
				wantCheckpoint(t, t.Context(), h, rawEvent(test.record), "")
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("change (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Handle is Invoke with the types of aws-lambda-go: the same changes, and an answer whose list is empty and not null.
func TestHandle(t *testing.T) {
	var in events.DynamoDBEvent
	records := noted("a0", "b1", "c2")
	records[2].Operation = "REMOVE"
	if err := json.Unmarshal(event(records...), &in); err != nil {
		t.Fatal(err)
	}
	in.Records[2].UserIdentity = &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}
	var mu sync.Mutex
	got := map[string]seen{}
	w := &worker{errs: failing("b1"), work: func(_ context.Context, c *dynamodbstream.Change[order]) error {
		mu.Lock()
		defer mu.Unlock()
		if c.CreatedAt().IsZero() || c.StreamARN() != ordersARN || c.SequenceNumber() == "" {
			t.Errorf("change is %s, want it to have a time, a stream and a number", c.JSON())
		}
		got[c.ID()] = seen{c.Operation(), c.Keys, c.Old, c.New, c.ByTTL()}
		return nil
	}}
	h := newHandler(t, w.handle, guarded(t))
	response, err := h.Handle(t.Context(), in)
	want := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{{ItemIdentifier: sequence(1)}}}
	if diff := cmp.Diff(want, response); err != nil || diff != "" {
		t.Errorf("error is %v, response (-want +got):\n%s", err, diff)
	}
	image := func(id, note string) *order { return &order{ID: id, Note: note} }
	wantSeen := map[string]seen{
		eventID(0): {dynamodbstream.Modify, order{ID: "a"}, image("a", "a0"), image("a", "a0"), false},
		eventID(1): {dynamodbstream.Modify, order{ID: "b"}, image("b", "b1"), image("b", "b1"), false},
		eventID(2): {dynamodbstream.Remove, order{ID: "c"}, image("c", "c2"), nil, true},
	}
	if diff := cmp.Diff(wantSeen, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	w.take()
	w.errs = nil
	response, err = h.Handle(t.Context(), in)
	want.BatchItemFailures = []events.DynamoDBBatchItemFailure{}
	if diff := cmp.Diff(want, response); err != nil || diff != "" {
		t.Errorf("error is %v, response of success (-want +got):\n%s", err, diff)
	}
	w.want(t, "b1")
}

// A value of every type that aws-lambda-go has goes through Handle.
func TestHandleAttributeValues(t *testing.T) {
	image := map[string]events.DynamoDBAttributeValue{
		"id": events.NewStringAttribute("a"), "number": events.NewNumberAttribute("12.5"), "binary": events.NewBinaryAttribute([]byte{0, 255}),
		"bool": events.NewBooleanAttribute(true), "null": events.NewNullAttribute(),
		"list":    events.NewListAttribute([]events.DynamoDBAttributeValue{events.NewStringAttribute("x"), events.NewNullAttribute()}),
		"map":     events.NewMapAttribute(map[string]events.DynamoDBAttributeValue{"k": events.NewStringAttribute("v")}),
		"strings": events.NewStringSetAttribute([]string{"s", "t"}), "numbers": events.NewNumberSetAttribute([]string{"1"}),
		"binaries": events.NewBinarySetAttribute([][]byte{{1}}),
	}
	var got map[string]any
	h := newHandler(t, func(_ context.Context, c *dynamodbstream.Change[map[string]any]) error { got = *c.New; return nil })
	response, err := h.Handle(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{
		Change: events.DynamoDBStreamRecord{Keys: map[string]events.DynamoDBAttributeValue{"id": image["id"]}, NewImage: image},
	}}})
	want := map[string]any{
		"id": "a", "number": 12.5, "binary": []byte{0, 255}, "bool": true, "null": nil, "list": []any{"x", nil}, "map": map[string]any{"k": "v"},
		"strings": []string{"s", "t"}, "numbers": []float64{1}, "binaries": [][]byte{{1}},
	}
	if diff := cmp.Diff(want, got); err != nil || len(response.BatchItemFailures) != 0 || diff != "" {
		t.Errorf("error is %v, failures are %v, new image (-want +got):\n%s", err, response.BatchItemFailures, diff)
	}
}

// An event that aws-lambda-go cannot encode, since it has a zero attribute value, is an error, and no panic. So is one
// without records. Nothing of them runs.
func TestHandleErrors(t *testing.T) {
	keys := map[string]events.DynamoDBAttributeValue{"id": events.NewStringAttribute("a")}
	zero := map[string]events.DynamoDBAttributeValue{"id": {}}
	nested := map[string]events.DynamoDBAttributeValue{"m": events.NewMapAttribute(zero)}
	of := func(r ...events.DynamoDBStreamRecord) (e events.DynamoDBEvent) {
		for _, change := range r {
			e.Records = append(e.Records, events.DynamoDBEventRecord{EventID: "e", Change: change})
		}
		return e
	}
	const want = "dynamodbstream: event: "
	for _, test := range []struct {
		name  string
		event events.DynamoDBEvent
		want  []string
	}{
		{"no records", events.DynamoDBEvent{}, []string{"dynamodbstream: event has Records that are null, want an array"}},
		{"zero value in an image", of(events.DynamoDBStreamRecord{Keys: keys}, events.DynamoDBStreamRecord{Keys: keys, NewImage: zero}),
			[]string{want, "want attribute values made by the functions of package events"}},
		{"zero value in keys", of(events.DynamoDBStreamRecord{Keys: zero}), []string{want, "want attribute values made by"}},
		{"zero value in a map", of(events.DynamoDBStreamRecord{Keys: keys, OldImage: nested}), []string{want, "want attribute values made by"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &worker{}
			response, err := newHandler(t, w.handle).Handle(t.Context(), test.event)
			if response.BatchItemFailures != nil {
				t.Errorf("response is %+v, want none", response)
			}
			wantError(t, err, test.want...)
			w.want(t)
		})
	}
	w := &worker{errs: failing("a0")}
	h := newHandler(t, w.handle)
	_, err := h.Handle(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{Change: events.DynamoDBStreamRecord{}}}})
	wantError(t, err, "record 0 has no sequence number and failed", "record has no Keys")
	if strings.Contains(err.Error(), "event: ") {
		t.Errorf("error is %q, want it to be about the record", err)
	}
}

// A handler holds no state of an invocation, so several can run at once.
func TestHandlerInvokedAtOnce(t *testing.T) {
	w := &worker{errs: failing("r3")}
	h := newHandler(t, w.handle, guarded(t))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			records := numbered(5)
			number := sequence(100*i + 3)
			for j := range records {
				records[j].N = 100*i + j
			}
			wantCheckpoint(t, t.Context(), h, event(records...), number)
		})
	}
	all.Wait()
	if got := len(w.take()); got != 40 {
		t.Errorf("%d changes ran, want 40", got)
	}
}
