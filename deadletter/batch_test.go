package deadletter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/deadletter"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// refuse makes a client refuse the letters of these records.
func refuse(ids ...string) *client {
	return &client{answer: func(_ context.Context, in *awssqs.SendMessageBatchInput, out *awssqs.SendMessageBatchOutput) (*awssqs.SendMessageBatchOutput, error) {
		out.Successful = nil
		for _, e := range in.Entries {
			var l deadletter.Letter
			if err := json.Unmarshal([]byte(*e.MessageBody), &l); err != nil {
				return nil, err
			}
			if slices.Contains(ids, l.ID) {
				code := "InternalError"
				out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: &code})
			} else {
				out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
			}
		}
		return out, nil
	}}
}

// A record is done if SQS has its letter, and Failed otherwise, also one whose letter was in the same request.
func TestProcess(t *testing.T) {
	var records []batch.Record
	for i := range 20 {
		records = append(records, *record(fmt.Sprint(i)))
	}
	records[7].Value = 7 // which is no letter
	c := refuse("3", "4")
	s := newSink(t, c, standardURL)
	report, err := batch.Process(t.Context(), records, permanent, func(o *batch.Options) {
		o.DeadLetter, o.Concurrency, o.Logger = s.DeadLetter, 20, silent
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range report.Results {
		want := batch.DeadLettered
		if i == 3 || i == 4 || i == 7 {
			want = batch.Failed
		}
		if r.Outcome != want || !errors.Is(r.Err, errBoom) {
			t.Errorf("record %d is %v: %v; want %v and the handler's error", i, r.Outcome, r.Err, want)
		}
		if _, refused := errors.AsType[*deadletter.EntryError](r.Err); refused != (i == 3 || i == 4) {
			t.Errorf("record %d: refused by SQS: %v in %v", i, refused, r.Err)
		}
	}
}

type order struct {
	ID string `json:"id"`
}

// shop is a consumer of orders whose messages with an id of "bad" fail.
type shop struct {
	ran atomic.Int32
}

func (s *shop) place(_ context.Context, m *sqs.Message[order]) error {
	s.ran.Add(1)
	if m.Body.ID == "bad" {
		return errBoom
	}
	return nil
}

func orders(receives string, bodies ...string) events.SQSEvent {
	var event events.SQSEvent
	for i, body := range bodies {
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: fmt.Sprint("m", i+1), ReceiptHandle: "handle", Body: body, EventSource: "aws:sqs",
			EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders",
			Attributes:     map[string]string{"ApproximateReceiveCount": receives},
		})
	}
	return event
}

// The sink behind a handler of SQS with a guard: when a message is given up, what its letter says, what the queue is told,
// and what becomes of the key.
func TestSQS(t *testing.T) {
	for _, business := range []bool{false, true} {
		for _, taken := range []bool{true, false} {
			t.Run(fmt.Sprintf("business key %v, taken %v", business, taken), func(t *testing.T) {
				c := refuse()
				if !taken {
					c = refuse("m2")
				}
				sink := newSink(t, c, standardURL)
				guard, err := idempotency.New("orders", idempotency.NewMemoryStore())
				if err != nil {
					t.Fatal(err)
				}
				var w shop
				handler, err := sqs.NewHandler(w.place, func(o *sqs.Options) {
					o.Idempotency, o.MaxAttempts, o.DeadLetter, o.Logger = guard, 3, sink.DeadLetter, silent
					if business {
						sqs.KeyOf(func(o order) string { return o.ID })(o)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				deliver := func(receives string, ran int32, failed ...string) {
					t.Helper()
					w.ran.Store(0)
					response, err := handler.Handle(t.Context(), orders(receives, `{"id":"good"}`, `{"id":"bad"}`))
					if err != nil {
						t.Fatal(err)
					}
					var got []string
					for _, f := range response.BatchItemFailures {
						got = append(got, f.ItemIdentifier)
					}
					if diff := cmp.Diff(failed, got); diff != "" {
						t.Errorf("failures at receive %s (-want +got):\n%s", receives, diff)
					}
					if n := w.ran.Load(); n != ran {
						t.Errorf("receive %s: handler ran %d times, want %d", receives, n, ran)
					}
				}
				deliver("2", 2, "m2")
				if n := len(c.sent()); n != 0 {
					t.Errorf("%d requests before the last attempt, want none", n)
				}
				if taken {
					deliver("3", 1)
				} else {
					deliver("3", 1, "m2")
				}

				letters := c.letters(t)
				if len(letters) != 1 {
					t.Fatalf("%d letters, want 1", len(letters))
				}
				letter := letters[0]
				var original events.SQSMessage
				if err := json.Unmarshal(letter.Record, &original); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(orders("3", `{"id":"good"}`, `{"id":"bad"}`).Records[1], original); diff != "" {
					t.Errorf("record of the letter (-want +got):\n%s", diff)
				}
				want := deadletter.Letter{
					Version: 1, ID: "m2", Key: "m2", Source: "arn:aws:sqs:eu-central-1:123456789012:orders", Attempts: 3, Error: "boom",
					Time: letter.Time, Record: letter.Record,
				}
				if business {
					want.Key = "bad"
				}
				if diff := cmp.Diff(want, letter); diff != "" {
					t.Errorf("letter (-want +got):\n%s", diff)
				}

				// Delivered again, as after a lost answer. What was given up under its own identity is done, a business key is free
				// for the redrive, and what was not given up is tried again.
				switch {
				case !taken:
					deliver("4", 1, "m2")
				case business:
					deliver("4", 1)
				default:
					deliver("4", 0)
				}
			})
		}
	}
}

// A function that reads the dead-letter queue has letters as its payload, and can hand their records to the handler again.
func TestReader(t *testing.T) {
	var c client
	sink := newSink(t, &c, standardURL)
	var w shop
	handler, err := sqs.NewHandler(w.place, func(o *sqs.Options) { o.MaxAttempts, o.DeadLetter, o.Logger = 1, sink.DeadLetter, silent })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handler.Handle(t.Context(), orders("1", `{"id":"bad"}`)); err != nil {
		t.Fatal(err)
	}
	if n := len(c.sent()); n != 1 {
		t.Fatalf("%d letters, want 1", n)
	}
	var again []byte
	reader, err := sqs.NewHandler(func(ctx context.Context, m *sqs.Message[deadletter.Letter]) error {
		again = fmt.Appendf(nil, `{"Records":[%s]}`, m.Body.Record)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	response, err := reader.Handle(t.Context(), orders("1", *c.sent()[0].Entries[0].MessageBody))
	if err != nil || len(response.BatchItemFailures) > 0 {
		t.Fatalf("reader: %v, %v", response, err)
	}
	w.ran.Store(0)
	if _, err := handler.Invoke(t.Context(), again); err != nil {
		t.Error(err)
	}
	if n := w.ran.Load(); n != 1 {
		t.Errorf("handler ran %d times with the letter's record, want once", n)
	}
}
