package eventbridgetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

type subscriber = eventbridgetest.Subscriber

// How events are gathered into batches.
func TestBatches(t *testing.T) {
	for _, test := range []struct {
		name string
		s    subscriber
		put  []time.Duration // when an event is put
		want []string
	}{
		{"at most ten", subscriber{}, make([]time.Duration, 12), []string{"0s 0,1,2,3,4,5,6,7,8,9", "0s 10,11"}},
		{"at most two", subscriber{MaxBatchSize: 2}, make([]time.Duration, 5), []string{"0s 0,1", "0s 2,3", "0s 4"}},
		{"one", subscriber{MaxBatchSize: 1}, make([]time.Duration, 2), []string{"0s 0", "0s 1"}},
		{"a window", subscriber{MaxBatchWindow: 10 * time.Second}, []time.Duration{0, 9 * time.Second, 11 * time.Second},
			[]string{"10s 0,1", "21s 2"}},
		{"a window that fills", subscriber{MaxBatchSize: 2, MaxBatchWindow: 10 * time.Second},
			[]time.Duration{0, time.Second, time.Second}, []string{"1s 0,1", "11s 2"}},
		{"answers", subscriber{RequestResponse: true}, make([]time.Duration, 12), []string{"0s 0,1,2,3,4,5,6,7,8,9", "0s 10,11"}},
		{"answers in order", subscriber{RequestResponse: true, FIFO: true, MaxBatchSize: 2}, make([]time.Duration, 3), []string{"0s 0,1", "0s 2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBus(t, "orders", subscribed(test.s))
				times := newTimetable()
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					for i, at := range test.put {
						time.Sleep(time.Until(times.start.Add(at)))
						if _, err := b.Put(order(fmt.Sprint(i))); err != nil {
							t.Error(err)
						}
					}
				}()
				synctest.Wait() // what is put at once is there
				ran := make(chan error)
				go func() {
					ran <- b.Run(ctx, handler(func(_ context.Context, orders []string) error {
						times.note(orders...)
						return nil
					}))
				}()
				time.Sleep(time.Minute)
				cancel()
				if err := <-ran; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(test.want, times.all()); diff != "" {
					t.Errorf("invocations (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A batch is no larger than what a function can be invoked with.
func TestLargeBatches(t *testing.T) {
	for _, test := range []struct {
		s    subscriber
		want string
	}{
		{subscriber{}, "1 1 1 1 1 1 1 1"},
		{subscriber{RequestResponse: true}, "5 3"},
		{subscriber{RequestResponse: true, MaxBatchSize: 3, MaxBatchWindow: time.Minute}, "3 3 2"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBus(t, "orders", subscribed(test.s))
			for range 8 {
				if _, err := b.PutRaw(eventbridgetest.RawEvent{Data: `"` + strings.Repeat("a", 1<<20-2) + `"`}); err != nil {
					t.Fatal(err)
				}
			}
			var sizes []string
			drain(t, b, lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
				var events []string
				if err := json.Unmarshal(payload, &events); err != nil || len(payload) > lambdatest.MaxPayload {
					t.Errorf("payload of %d bytes: %v", len(payload), err)
				}
				sizes = append(sizes, fmt.Sprint(len(events)))
				return nil, nil
			}))
			if got := strings.Join(sizes, " "); got != test.want {
				t.Errorf("batches of %+v are %s, want %s", test.s, got, test.want)
			}
		})
	}
}

// A subscriber that waits for the answer calls again with the whole batch, after a delay that grows, and gives it up with a
// record about it. One that does not wait leaves the batch to Lambda, and to the function's queue.
func TestBatchFails(t *testing.T) {
	type options = eventbridgetest.Options
	for _, test := range []struct {
		name    string
		s       subscriber
		option  func(*options)
		letter  string
		calls   int
		longest time.Duration
	}{
		{name: "waits", s: subscriber{RequestResponse: true}, letter: "TargetQueue RetriesExhausted 5", calls: 6, longest: 31 * time.Second},
		{name: "waits, in order", s: subscriber{RequestResponse: true, FIFO: true}, letter: "TargetQueue RetriesExhausted 5", calls: 6, longest: 31 * time.Second},
		{name: "waits, for no retry", s: subscriber{RequestResponse: true}, option: func(o *options) { o.TargetRetry.MaximumRetryAttempts = -1 },
			letter: "TargetQueue RetriesExhausted 0", calls: 1},
		{name: "waits, throttled", s: subscriber{RequestResponse: true}, option: func(o *options) {
			o.Throttle = func(lambdatest.Point) bool { return true }
		}, letter: "TargetQueue RetriesExhausted 5", longest: 31 * time.Second},
		{name: "waits, out of reach", s: subscriber{RequestResponse: true}, option: func(o *options) {
			o.TargetFault = func(lambdatest.Point) error { return eventbridgetest.ErrNotRetriable }
		}, letter: "TargetQueue NotRetriable 0"},
		{name: "waits, too old", s: subscriber{RequestResponse: true}, option: func(o *options) { o.TargetRetry.MaximumEventAge = 2 * time.Second },
			letter: "TargetQueue EventAgeExceeded", calls: 2, longest: 2 * time.Second},
		{name: "does not wait", s: subscriber{}, letter: "FunctionQueue RetriesExhausted 2", calls: 3, longest: 3 * time.Minute},
		{name: "does not wait, in order", s: subscriber{FIFO: true}, letter: "FunctionQueue RetriesExhausted 2", calls: 3, longest: 3 * time.Minute},
		{name: "does not wait, out of reach", s: subscriber{}, option: func(o *options) {
			o.TargetFault = func(lambdatest.Point) error { return errNo }
		}, letter: "TargetQueue RetriesExhausted 5", longest: 31 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBus(t, "orders", subscribed(test.s), func(o *options) {
					o.Seed = 2
					if test.option != nil {
						test.option(o)
					}
				})
				ids := []string{putIn(t, b, "g", "o1"), putIn(t, b, "", "o2")}
				start, calls := time.Now(), 0
				drain(t, b, handler(func(_ context.Context, orders []string) error {
					calls++
					if diff := cmp.Diff([]string{"o1", "o2"}, orders); diff != "" {
						t.Errorf("batch (-want +got):\n%s", diff)
					}
					return errNo
				}))
				l := b.DeadLetters()[0]
				if got := fmt.Sprint(l.Queue, " ", l.Reason, " ", l.Retries); !strings.HasPrefix(got, test.letter) || calls != test.calls {
					t.Errorf("dead letter is %q after %d calls, want %q after %d", got, calls, test.letter, test.calls)
				}
				if took := l.At.Sub(start); took < test.longest/2 || took > test.longest {
					t.Errorf("given up after %v, want %v or up to half of that less", took, test.longest)
				}
				if diff := cmp.Diff(ids, l.IDs); diff != "" {
					t.Errorf("ids of the letter (-want +got):\n%s", diff)
				}
				orders, err := ordersOf([]byte(l.Body))
				if l.Queue == eventbridgetest.FunctionQueue {
					if diff := cmp.Diff([]string{"o1", "o2"}, orders); diff != "" {
						t.Errorf("events of the letter (-want +got), error %v:\n%s", err, diff)
					}
					return
				}
				condition := map[eventbridgetest.Reason]string{
					eventbridgetest.RetriesExhausted: `"exhaustedRetryCondition":"MaximumRetryAttempts",`,
					eventbridgetest.EventAgeExceeded: `"exhaustedRetryCondition":"MaximumEventAgeInSeconds",`,
				}[l.Reason]
				want := fmt.Sprintf(`{"version":"1.0","busArn":%q,"subscriberArn":"arn:aws:events:us-east-1:123456789012:subscriber/orders/example1234567890abcdef12",`+
					`"targetArn":"arn:aws:lambda:us-east-1:123456789012:function:consumer","errorCode":"TARGET_ERROR","errorMessage":%q,%s"retryAttempts":%d,"failedMessages":[`+
					`{"eventId":%q,"eventGroupId":"g","deduplicationId":null,"timestamp":"2000-01-01T00:00:00Z"},`+
					`{"eventId":%q,"eventGroupId":null,"deduplicationId":null,"timestamp":"2000-01-01T00:00:00Z"}]}`,
					b.ARN(), l.Err, condition, l.Retries, ids[0], ids[1])
				if diff := cmp.Diff(want, l.Body); diff != "" {
					t.Errorf("record (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A call that fails holds up all that comes behind it, of every group, if the subscriber is a FIFO one that waits. One that
// does not wait hands all over at once, and one without order goes on with the next batch.
func TestOrder(t *testing.T) {
	for _, test := range []struct {
		name string
		s    subscriber
		want string
	}{
		{"in order", subscriber{RequestResponse: true, FIFO: true, MaxBatchSize: 2}, "a1,b1 a1,b1 a2,b2 c1"},
		{"in order, handed over", subscriber{FIFO: true, MaxBatchSize: 2}, "a1,b1 a2,b2 c1 a1,b1"},
		{"in no order", subscriber{RequestResponse: true, MaxBatchSize: 2}, "a1,b1 a2,b2 c1 a1,b1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBus(t, "orders", subscribed(test.s), func(o *eventbridgetest.Options) { o.Concurrency = 3 })
				for _, o := range []string{"a1", "b1", "a2", "b2", "c1"} {
					putIn(t, b, o[:1], o)
				}
				result := failFirst(1)
				var got log[string]
				drain(t, b, handler(func(_ context.Context, orders []string) error {
					if orders[0] != "a1" { // that several start at once in a known order
						time.Sleep(time.Duration(orders[0][0]))
					}
					got.add(strings.Join(orders, ","))
					if orders[0] == "a1" {
						return result()
					}
					return nil
				}))
				if diff := cmp.Diff(test.want, strings.Join(got.all(), " ")); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What is behind a failing batch of a FIFO subscriber can get too old before its turn comes. Of a batch, only those events are
// given up that are too old, and the others are tried when they would have been.
func TestEventsGetTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, "orders", subscribed(subscriber{RequestResponse: true, FIFO: true, MaxBatchSize: 2}), func(o *eventbridgetest.Options) {
			o.Seed, o.TargetRetry.MaximumEventAge = 1, 10*time.Second
		})
		start := time.Now()
		ids := put(t, b, "o1")
		time.Sleep(6 * time.Second)
		ids = append(ids, put(t, b, "o2")...)
		time.Sleep(time.Second / 2)
		put(t, b, "o3")
		times := newTimetable()
		drain(t, b, handler(func(_ context.Context, orders []string) error {
			times.add(strings.Join(orders, ","))
			if orders[0] != "o3" {
				return errNo
			}
			return nil
		}))
		// They are tried at 6.5 seconds, 7.3, 8.6, 11.6 and 16.5, with the delays of this seed.
		if diff := cmp.Diff("o1,o2 o1,o2 o1,o2 o2 o3", strings.Join(times.all(), " ")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		want := []string{ids[0] + " 10 EventAgeExceeded 2", ids[1] + " 16 EventAgeExceeded 3"}
		var got []string
		for _, l := range b.DeadLetters() {
			got = append(got, fmt.Sprint(strings.Join(l.IDs, ","), " ", l.At.Sub(start).Seconds(), " ", l.Reason, " ", l.Retries))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
		if h := b.Histories()[1]; len(h.Delivered) != 4 || h.Delivered[3].Sub(start) <= 10*time.Second {
			t.Errorf("o2 was delivered at %v, want the fourth time when it would have been without o1", at(start, h.Delivered...))
		}
	})
}

// After InvocationTimeout the subscriber calls again, while the function still works on the same events. What it answers
// then is not heard. Time decides: an answer at the very moment is too late.
func TestInvocationTimeout(t *testing.T) {
	for _, test := range []struct {
		name    string
		work    time.Duration
		fifo    bool
		want    []float64 // calls, with the delays of this seed
		overlap int
		stats   string
	}{
		{"in time", 10*time.Second - 1, false, []float64{0}, 1, "1 put, 1 invocation, 1 done"},
		{"at the moment", 10 * time.Second, false, []float64{0, 10.5, 21.5, 33.5, 47.5, 65.5}, 1,
			"1 put, 6 invocations, 1 dead-lettered, 6 given up"},
		{"too late", 25 * time.Second, false, []float64{0, 10.5, 21.5, 33.5, 47.5, 65.5}, 3,
			"1 put, 6 invocations, 1 dead-lettered, 6 given up"},
		{"too late, in order", 25 * time.Second, true, []float64{0, 10.5, 21.5, 33.5, 47.5, 65.5}, 3,
			"1 put, 6 invocations, 1 dead-lettered, 6 given up"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var observed log[eventbridgetest.Delivery]
				b := newBus(t, "orders", func(o *eventbridgetest.Options) {
					o.Seed, o.FunctionTimeout, o.Observe = 1, 5*time.Minute, observed.add
					o.Subscriber = &subscriber{RequestResponse: true, FIFO: test.fifo, InvocationTimeout: 10 * time.Second}
				})
				id := put(t, b, "o1")[0]
				start := time.Now()
				running, most := 0, 0
				var started log[int]
				drain(t, b, handler(func(ctx context.Context, _ []string) error {
					if deadline, _ := ctx.Deadline(); time.Until(deadline) != 5*time.Minute {
						t.Errorf("deadline is in %v, want that of the function, 5m", time.Until(deadline))
					}
					started.add(1)
					time.Sleep(test.work)
					started.add(-1)
					return nil
				}))
				for _, n := range started.all() {
					running += n
					most = max(most, running)
				}
				if most != test.overlap {
					t.Errorf("%d invocations overlap, want %d", most, test.overlap)
				}
				delivered := at(start, b.Histories()[0].Delivered...)
				if len(delivered) != len(test.want) {
					t.Fatalf("called at %v, want about %v", delivered, test.want)
				}
				for i, want := range test.want {
					// Each delay is up to twice the shortest, which is what the table has.
					if got := delivered[i]; got < want || got > want+want-10*float64(i) {
						t.Errorf("call %d at %v, want %v to %v", i+1, got, want, want+want-10*float64(i))
					}
				}
				if got := b.Stats().String(); got != test.stats {
					t.Errorf("stats are %q, want %q", got, test.stats)
				}
				for i, d := range observed.all() {
					if d.Ending != lambdatest.Answered || d.GivenUp != (test.work >= 10*time.Second) || d.Ended.Sub(d.Started) != test.work ||
						d.IDs[0] != id || d.Attempt != i+1 || string(d.Response) != "null" {
						t.Errorf("delivery is %+v", d)
					}
				}
				if len(observed.all()) != len(test.want) {
					t.Errorf("%d deliveries observed, want %d: Drain waits for all", len(observed.all()), len(test.want))
				}
			})
		})
	}
}

// While a subscriber waits, its place is taken; once it has given up, another batch can have it.
func TestConcurrency(t *testing.T) {
	for _, test := range []struct {
		concurrency int
		s           *subscriber
		work        time.Duration
		want        []string
	}{
		{1, nil, 5 * time.Second, []string{"0s o1", "5s o2", "10s o3"}},
		{3, nil, 5 * time.Second, []string{"0s o1", "0s o2", "0s o3"}},
		{2, nil, 5 * time.Second, []string{"0s o1", "0s o2", "5s o3"}},
		{1, &subscriber{MaxBatchSize: 1, RequestResponse: true}, 5 * time.Second, []string{"0s o1", "5s o2", "10s o3"}},
		{3, &subscriber{MaxBatchSize: 1, RequestResponse: true, FIFO: true}, 5 * time.Second, []string{"0s o1", "5s o2", "10s o3"}},
		{1, &subscriber{MaxBatchSize: 1, RequestResponse: true, InvocationTimeout: time.Second}, 5 * time.Second, []string{"0s o1", "1s o2", "2s o3"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBus(t, "orders", func(o *eventbridgetest.Options) {
				o.Concurrency, o.Subscriber = test.concurrency, test.s
				o.TargetRetry.MaximumRetryAttempts = eventbridgetest.NoRetries
			})
			put(t, b, "o1", "o2", "o3")
			times := newTimetable()
			drain(t, b, handler(func(_ context.Context, orders []string) error {
				time.Sleep(time.Duration(orders[0][1]-'0') * time.Nanosecond) // that several at once have a known order
				times.add(fmt.Sprint(time.Since(times.start).Truncate(time.Second), " ", orders[0]))
				time.Sleep(test.work)
				return nil
			}))
			if diff := cmp.Diff(test.want, times.all()); diff != "" {
				t.Errorf("with concurrency %d and %+v (-want +got):\n%s", test.concurrency, test.s, diff)
			}
		})
	}
}
