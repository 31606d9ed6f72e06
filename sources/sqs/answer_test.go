package sqs_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs"
)

// Case 1: all failures are reported, once each and in input order, whatever the order of completion.
func TestAnswerNamesEveryFailure(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		synctest.Test(t, func(t *testing.T) {
			w := &worker{errs: failing("m2", "m5", "m9")}
			w.work = func(_ context.Context, m *sqs.Message[string]) error {
				n, err := strconv.Atoi(strings.TrimPrefix(m.ID(), "m"))
				time.Sleep(time.Duration(20-n) * time.Millisecond) // the later ones end first
				return err
			}
			h := newHandler(t, w.handle, options)
			wantFailures(t, t.Context(), h, event(numbered(10)...), "m2", "m5", "m9")
			w.want(t, "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10")
		})
	})
}

// Case 5: the bytes of the answer. With null, another case or another name Lambda deletes the whole batch.
func TestAnswerBytes(t *testing.T) {
	for _, test := range []struct {
		name     string
		messages []message
		errs     map[string]error
		want     string
	}{
		{"no messages", nil, nil, `{"batchItemFailures":[]}`},
		{"success", numbered(2), nil, `{"batchItemFailures":[]}`},
		{"a failure", numbered(2), failing("m2"), `{"batchItemFailures":[{"itemIdentifier":"m2"}]}`},
		{"two failures", numbered(3), failing("m1", "m3"), `{"batchItemFailures":[{"itemIdentifier":"m1"},{"itemIdentifier":"m3"}]}`},
		{"all failed", numbered(1), failing("m1"), `{"batchItemFailures":[{"itemIdentifier":"m1"}]}`},
		{"an identifier that needs quoting", []message{{ID: "a\"\\\n<é"}}, failing("a\"\\\n<é"),
			`{"batchItemFailures":[{"itemIdentifier":"a\"\\\n<é"}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &worker{errs: test.errs}
			got, err := newHandler(t, w.handle).Invoke(t.Context(), event(test.messages...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// Handle answers as Invoke does, and its list is empty, not null.
func TestAnswerOfHandle(t *testing.T) {
	w := &worker{errs: failing("m2")}
	h := newHandler(t, w.handle)
	var in events.SQSEvent
	for _, id := range []string{"m1", "m2"} {
		in.Records = append(in.Records, events.SQSMessage{MessageId: id, Body: id})
	}
	got, err := h.Handle(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{ItemIdentifier: "m2"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	got, err = h.Handle(t.Context(), events.SQSEvent{Records: in.Records[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}, got); diff != "" {
		t.Errorf("response of success (-want +got):\n%s", diff)
	}
	if _, err = h.Handle(t.Context(), events.SQSEvent{}); err == nil || !strings.Contains(err.Error(), "Records that are null") {
		t.Errorf("event without records: error is %v, want one that says so", err)
	}
}

// Case 11: the same message twice in a batch runs once and is reported once.
func TestAnswerSameMessageTwice(t *testing.T) {
	for _, arn := range []string{standardARN, fifoARN} {
		for _, group := range []string{"", "g"} {
			first := message{ID: "m1", Body: "m1", ARN: arn, Group: group, Handle: "first"}
			again := first
			again.Handle, again.Receives = "second", 2
			other := message{ID: "m2", Body: "m2", ARN: arn, Group: "other"}
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				w := &worker{}
				wantFailures(t, t.Context(), newHandler(t, w.handle, options), event(first, other, again))
				w.want(t, "m1", "m2")
			})
		}
	}
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		w := &worker{errs: failing("m1")}
		same := message{ID: "m1", Body: "m1"}
		wantFailures(t, t.Context(), newHandler(t, w.handle, options), event(same, same, message{ID: "m2"}, same), "m1")
		w.want(t, "m1", "m2")
	})
}

// One copy of a message that succeeds and one that fails share an identifier. Told as done, the failure would be lost.
func TestAnswerFailureWins(t *testing.T) {
	good := message{ID: "m1", Body: "good"}.record()
	bad := strings.Replace(good, `"body":"good"`, `"body":17`, 1)
	for _, records := range [][]string{{good, bad}, {bad, good}, {bad, good, bad}} {
		for _, n := range []int{1, 10} {
			w := &worker{}
			wantFailures(t, t.Context(), newHandler(t, w.handle, concurrency(n)), rawEvent(records...), "m1")
			w.want(t, "m1")
		}
	}
}

// Cases 9 and 10: a failure is an entry of the list and no error, unless ErrorOn says otherwise.
func TestAnswerErrorOn(t *testing.T) {
	some, all := failing("m1", "m3"), failing("m1", "m2", "m3")
	for _, test := range []struct {
		name string
		on   batch.ErrorOn
		errs map[string]error
		want []string // nil: an error
	}{
		{"nothing, no failure", batch.ErrorOnNothing, nil, []string{}},
		{"nothing, some fail", batch.ErrorOnNothing, some, []string{"m1", "m3"}},
		{"nothing, all fail", batch.ErrorOnNothing, all, []string{"m1", "m2", "m3"}},
		{"total, no failure", batch.ErrorOnTotalFailure, nil, []string{}},
		{"total, some fail", batch.ErrorOnTotalFailure, some, []string{"m1", "m3"}},
		{"total, all fail", batch.ErrorOnTotalFailure, all, nil},
		{"any, no failure", batch.ErrorOnAnyFailure, nil, []string{}},
		{"any, some fail", batch.ErrorOnAnyFailure, some, nil},
		{"any, all fail", batch.ErrorOnAnyFailure, all, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
				w := &worker{errs: test.errs}
				h := newHandler(t, w.handle, options, func(o *sqs.Options) { o.ErrorOn = test.on })
				payload := event(numbered(3)...)
				if test.want != nil {
					wantFailures(t, t.Context(), h, payload, test.want...)
					return
				}
				response, err := h.Invoke(t.Context(), payload)
				var failed *batch.FailedError
				if response != nil || !errors.As(err, &failed) {
					t.Fatalf("answer is %q, error is %v, want no answer and a *batch.FailedError", response, err)
				}
				want := batch.FailedError{Failed: len(test.errs), Records: 3, First: test.errs["m1"], ID: "m1"}
				if failed.Failed != want.Failed || failed.Records != want.Records || failed.ID != want.ID || !errors.Is(err, want.First) {
					t.Errorf("error is %+v, want %+v", *failed, want)
				}
				w.want(t, "m1", "m2", "m3")
			})
		})
	}
	// An empty batch has not failed.
	h := newHandler(t, (&worker{}).handle, func(o *sqs.Options) { o.ErrorOn = batch.ErrorOnTotalFailure })
	wantFailures(t, t.Context(), h, rawEvent())
}

// A middleware that changes the engine's record changes neither the name that a message is reported by nor the receipt
// handle that its visibility is changed by.
func TestAnswerNamesMessagesByTheirOwnID(t *testing.T) {
	var c changer
	w := &worker{errs: map[string]error{"m2": batch.RetryAfter(time.Minute, errors.New("no"))}}
	h := newHandler(t, w.handle, concurrency(1), c.option, func(o *sqs.Options) {
		o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
			return func(ctx context.Context, r *batch.Record) error {
				r.ID = "trace of " + r.ID
				return next(ctx, r)
			}
		}}
	})
	wantFailures(t, t.Context(), h, event(numbered(3)...), "m2")
	w.wantOrder(t, "m1", "m2", "m3")
	c.want(t, change(standardARN, "m2", time.Minute))
}
