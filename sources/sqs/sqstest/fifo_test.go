package sqstest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// fifo makes messages of bodies like A1, whose group is the letter.
func fifo(bodies ...string) []sqstest.Message {
	var messages []sqstest.Message
	for _, body := range bodies {
		messages = append(messages, sqstest.Message{Body: body, GroupID: body[:1]})
	}
	return messages
}

// batches returns a handler that notes its batches by body and fails the bodies that the function says.
func batches(fails func(body string, receive int) bool) (lambdatest.Handler, *log[string]) {
	noted := new(log[string])
	now := since()
	receives := make(map[string]int)
	return lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var got []string
		answer, err := each(func(ctx context.Context, m events.SQSMessage) error {
			got = append(got, m.Body)
			receives[m.Body]++
			if fails(m.Body, receives[m.Body]) {
				return errNo
			}
			return nil
		}).Invoke(ctx, payload)
		noted.add(fmt.Sprintf("%v %v", now(), got))
		return answer, err
	}), noted
}

func TestFIFOBatchOfSeveralGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders.fifo", func(o *sqstest.Options) { o.BatchSize = 4 })
		send(t, q, fifo("A1", "B1", "A2", "B2", "A3", "C1")...)
		// A1 and with it, as a FIFO handler must, A2 fail the first time.
		h, noted := batches(func(body string, receive int) bool { return receive == 1 && (body == "A1" || body == "A2") })
		drain(t, q, h)
		// A3 waits for its group although it was never out.
		if diff := cmp.Diff([]string{"0 [A1 B1 A2 B2]", "0 [C1]", "180 [A1 A2 A3]"}, noted.all()); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestFIFOGroupInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders.fifo", func(o *sqstest.Options) { o.BatchSize, o.Concurrency = 1, 5 })
		send(t, q, fifo("A1", "A2", "B1", "A3", "B2")...)
		now := since()
		var noted log[string]
		drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
			noted.add(fmt.Sprintf("%v %s", now(), m.Body))
			time.Sleep(time.Second)
			return nil
		}))
		got := noted.all()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"0 A1", "0 B1", "1 A2", "1 B2", "2 A3"}, got); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
	})
}

// A group is released early only if all of its messages in flight are.
func TestFIFOChangeVisibility(t *testing.T) {
	for _, test := range []struct {
		name     string
		released []string
		want     []string
	}{
		{"all", []string{"A2", "A3"}, []string{"0 [A1 A2 A3]", "5 [A2 A3 A4]"}},
		{"the earlier", []string{"A2"}, []string{"0 [A1 A2 A3]", "180 [A2 A3 A4]"}},
		{"the later", []string{"A3"}, []string{"0 [A1 A2 A3]", "180 [A2 A3 A4]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q *sqstest.Queue
				first := true
				q = newQueue(t, "orders.fifo", func(o *sqstest.Options) {
					o.BatchSize = 3
					o.Observe = func(d sqstest.Delivery) {
						for _, m := range d.Messages {
							if first && slices.Contains(test.released, m.Body) {
								if err := q.ChangeVisibility(t.Context(), m.ReceiptHandle, 5*time.Second); err != nil {
									t.Error(err)
								}
							}
						}
						first = false
					}
				})
				send(t, q, fifo("A1", "A2", "A3", "A4")...)
				h, noted := batches(func(body string, receive int) bool { return receive == 1 && body != "A1" && body != "A4" })
				drain(t, q, h)
				if diff := cmp.Diff(test.want, noted.all()); diff != "" {
					t.Errorf("batches (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A FIFO queue takes a receipt handle only while the message is in flight, a standard queue as long as it is the
// newest.
func TestDeleteAfterVisibilityTimeout(t *testing.T) {
	for name, want := range map[string]int{"orders": 1, "orders.fifo": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, name)
				send(t, q, sqstest.Message{Body: "a", GroupID: "g"})
				n := 0
				drain(t, q, each(func(ctx context.Context, m events.SQSMessage) error {
					if n++; n == 1 {
						// Visible again at once, but the only poller is busy with this invocation.
						return q.ChangeVisibility(ctx, m.ReceiptHandle, 0)
					}
					return nil
				}))
				if n != want {
					t.Errorf("received %d times, want %d", n, want)
				}
			})
		})
	}
}

func TestDeduplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders.fifo")
		h, noted := receipts(0)
		first := send(t, q, sqstest.Message{Body: "a", GroupID: "g", DeduplicationID: "1"})[0]
		drain(t, q, h) // the window goes on after the delete
		time.Sleep(5*time.Minute - time.Nanosecond)
		for _, m := range []sqstest.Message{
			{Body: "b", GroupID: "g", DeduplicationID: "1"},
			{Body: "b", GroupID: "other", DeduplicationID: "1"},
		} {
			if id := send(t, q, m)[0]; id != first {
				t.Errorf("within 5 minutes the message ID is %s, want that of the first, %s", id, first)
			}
		}
		time.Sleep(time.Nanosecond)
		second := send(t, q, sqstest.Message{Body: "c", GroupID: "g", DeduplicationID: "1"})[0]
		if second == first {
			t.Error("after 5 minutes the message ID is that of the first, want another")
		}
		// Without a deduplication ID the body decides.
		twins := send(t, q, sqstest.Message{Body: "d", GroupID: "g"}, sqstest.Message{Body: "d", GroupID: "g"})
		if twins[0] != twins[1] {
			t.Errorf("two messages of the same body have IDs %q, want one", twins)
		}
		drain(t, q, h)
		if diff := cmp.Diff([]receipt{{0, "a", "1"}, {300, "c", "1"}, {300, "d", "1"}}, noted.all()); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		if got := q.Stats().Sent; got != 3 {
			t.Errorf("%d messages count as sent, want 3", got)
		}
	})
}

// Whatever fails, crashes and overlaps: no message of a group is delivered while another is being handled, none
// after one that is not done, and nothing is lost.
func TestFIFOOrderHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		seed := rapid.Uint64Range(1, 1000).Draw(r, "seed")
		groups := rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "C"}), 1, 20).Draw(r, "groups")
		batchSize := rapid.IntRange(1, 10).Draw(r, "batch size")
		concurrency := rapid.IntRange(1, 4).Draw(r, "concurrency")
		synctest.Test(t, func(t *testing.T) {
			fails := lambdatest.Randomly(seed+1000, .2)
			q := newQueue(t, "orders.fifo", func(o *sqstest.Options) {
				o.BatchSize, o.Concurrency, o.Seed = batchSize, concurrency, seed
				o.Crash = lambdatest.Randomly(seed, .05)
			})
			for i, group := range groups {
				send(t, q, sqstest.Message{Body: fmt.Sprintf("%s%02d", group, i), GroupID: group})
			}
			var handled log[string]
			var overlaps log[string]
			var busy log[string]
			drain(t, q, lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
				failed := make(map[string]bool)
				return each(func(ctx context.Context, m events.SQSMessage) error {
					group := m.Body[:1]
					if failed[group] || fails(lambdatest.Point{Name: m.Body}) {
						failed[group] = true
						return errNo
					}
					if slices.Contains(busy.all(), group) {
						overlaps.add(m.Body)
					}
					busy.add(group)
					time.Sleep(time.Second)
					busy.mu.Lock()
					busy.items = slices.DeleteFunc(busy.items, func(g string) bool { return g == group })
					busy.mu.Unlock()
					handled.add(m.Body)
					return nil
				}).Invoke(ctx, payload)
			}))
			if got := overlaps.all(); len(got) > 0 {
				t.Errorf("handled while another of the group was: %v", got)
			}
			for _, h := range q.Histories() {
				if h.Deleted.IsZero() {
					t.Errorf("message %s is not deleted", h.Message.Body)
				}
			}
			// First successes are in order.
			seen := make(map[string]bool)
			newest := make(map[string]string)
			for _, body := range handled.all() {
				if seen[body] {
					continue
				}
				seen[body] = true
				if newest[body[:1]] > body {
					t.Errorf("%s was handled for the first time after %s", body, newest[body[:1]])
				}
				newest[body[:1]] = body
			}
			if len(seen) != len(groups) {
				t.Errorf("%d messages were handled, want %d", len(seen), len(groups))
			}
		})
	})
}
