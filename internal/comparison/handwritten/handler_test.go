package handwritten

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/internal/dynamotest"
)

// TestInvoke delivers the same messages three times: one fails at first, one is claimed by somebody else, one is broken.
func TestInvoke(t *testing.T) {
	client := dynamotest.Client(t)
	table := Table{Client: client, Name: dynamotest.Table(t, client)}
	var handled atomic.Int64
	var failing atomic.Bool
	h := &Handler[struct{ Fail bool }]{Table: table, Concurrency: 2, Handle: func(_ context.Context, body *struct{ Fail bool }) error {
		handled.Add(1)
		if body.Fail && failing.Load() {
			return errors.New("not yet")
		}
		return nil
	}}
	payload, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "good", Body: `{}`},
		{MessageId: "failing", Body: `{"Fail":true}`},
		{MessageId: "claimed", Body: `{}`},
		{MessageId: "broken", Body: `{`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Claim(t.Context(), "orders#claimed", "somebody else", time.Now()); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	for _, test := range []struct {
		name    string
		handled int64
		failed  []string
	}{
		{"first run", 2, []string{"broken", "claimed", "failing"}},
		{"retry", 1, []string{"broken", "claimed"}},
		{"replay", 0, []string{"broken", "claimed"}},
	} {
		handled.Store(0)
		answer, err := h.Invoke(t.Context(), payload)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		var response events.SQSEventResponse
		if err := json.Unmarshal(answer, &response); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		var failed []string
		for _, f := range response.BatchItemFailures {
			failed = append(failed, f.ItemIdentifier)
		}
		slices.Sort(failed)
		if diff := cmp.Diff(test.failed, failed); diff != "" {
			t.Errorf("%s: failed (-want +got):\n%s", test.name, diff)
		}
		if got := handled.Load(); got != test.handled {
			t.Errorf("%s: the handler ran %d times, want %d", test.name, got, test.handled)
		}
		failing.Store(false)
	}
	if _, err := h.Invoke(t.Context(), []byte("{")); err == nil {
		t.Error("no error for what is no event")
	}
}
