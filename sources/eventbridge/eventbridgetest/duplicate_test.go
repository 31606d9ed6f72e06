package eventbridgetest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// A copy comes at once, while the function works on the event and after it is done, and its end is no other's.
func TestRedeliver(t *testing.T) {
	for _, test := range []struct {
		name  string
		s     *subscriber
		after time.Duration
		want  string
		stats string
	}{
		{"rule, in flight", nil, 5 * time.Second, "0s o1, 5s o1, 5s o2", "2 put, 1 duplicate, 3 invocations, 3 done"},
		{"rule, done", nil, 15 * time.Second, "0s o1, 15s o1, 15s o2", "2 put, 1 duplicate, 3 invocations, 3 done"},
		{"subscriber, in flight", &subscriber{RequestResponse: true}, 5 * time.Second, "0s o1, 5s o1, 5s o2", "2 put, 1 duplicate, 3 invocations, 3 done"},
		{"in order, in flight", &subscriber{RequestResponse: true, FIFO: true}, 5 * time.Second, "0s o1, 10s o1, 20s o2",
			"2 put, 1 duplicate, 3 invocations, 3 done"},
		{"in order, handed over", &subscriber{FIFO: true}, 5 * time.Second, "0s o1, 5s o1, 5s o2", "2 put, 1 duplicate, 3 invocations, 3 done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBus(t, "orders", func(o *eventbridgetest.Options) { o.Subscriber, o.Concurrency = test.s, 3 })
				id := put(t, b, "o1")[0]
				times := newTimetable()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				ran := make(chan error)
				go func() {
					ran <- b.Run(ctx, handler(func(_ context.Context, orders []string) error {
						time.Sleep(time.Duration(orders[0][1] - '0')) // that several at once have a known order
						times.add(strings.Join([]string{time.Since(times.start).Truncate(time.Second).String(), orders[0]}, " "))
						time.Sleep(10 * time.Second)
						return nil
					}))
				}()
				time.Sleep(test.after)
				if err := b.Redeliver(id); err != nil {
					t.Error(err)
				}
				put(t, b, "o2")
				if err := <-ran; err != nil {
					t.Error(err)
				}
				if got := strings.Join(times.all(), ", "); got != test.want {
					t.Errorf("invocations are %s, want %s", got, test.want)
				}
				if got := b.Stats().String(); got != test.stats {
					t.Errorf("stats are %q, want %q", got, test.stats)
				}
				if err := b.Redeliver("x"); err == nil || !strings.Contains(err.Error(), `event "x" was never on bus "orders"`) {
					t.Errorf("error is %v, want one of an unknown event", err)
				}
			})
		})
	}
}

// A FIFO subscriber's copy comes at once, also where a batch waits for its retry.
func TestRedeliverBeforeRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, "orders", subscribed(subscriber{RequestResponse: true, FIFO: true, MaxBatchSize: 1}))
		id := put(t, b, "o1", "o2")[0]
		result := failFirst(1)
		var got []string
		drain(t, b, handler(func(_ context.Context, orders []string) error {
			got = append(got, orders...)
			if orders[0] == "o1" {
				return nil
			}
			err := result()
			if err != nil {
				err = errors.Join(err, b.Redeliver(id))
			}
			return err
		}))
		if diff := cmp.Diff("o1 o2 o1 o2", strings.Join(got, " ")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// The age of a copy counts from when it comes, so that none is given up for what the kit has made of it.
func TestCopiesAreNotTooOld(t *testing.T) {
	for _, s := range []*subscriber{nil, {RequestResponse: true, MaxBatchSize: 1}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBus(t, "orders", func(o *eventbridgetest.Options) {
				o.Subscriber, o.DuplicateProbability, o.Seed, o.Concurrency = s, .9, 1, 50
				o.FunctionRetry.MaximumEventAge, o.TargetRetry.MaximumEventAge = time.Second, time.Second
			})
			id := put(t, b, strings.Split(strings.Repeat("o ", 19)+"o", " ")...)[0]
			h := handler(func(context.Context, []string) error { return nil })
			drain(t, b, h)
			time.Sleep(time.Hour)
			if err := b.Redeliver(id); err != nil {
				t.Error(err)
			}
			drain(t, b, h)
			if stats := b.Stats(); stats.Duplicates < 10 || stats.DeadLettered > 0 {
				t.Errorf("with %+v stats are %v, want duplicates and none given up", s, stats)
			}
		})
	}
}

// So many deliveries have a copy, half of which come at once and half within a minute. A copy has none itself.
func TestDuplicateProbability(t *testing.T) {
	for _, s := range []*subscriber{nil, {MaxBatchSize: 1}, {MaxBatchSize: 1, RequestResponse: true}, {MaxBatchSize: 1, RequestResponse: true, FIFO: true}} {
		run := func() (orders []string) {
			synctest.Test(t, func(t *testing.T) {
				b := newBus(t, "orders", func(o *eventbridgetest.Options) {
					o.Subscriber, o.DuplicateProbability, o.Seed = s, .3, 5
				})
				names := strings.Split(strings.Repeat("o ", 199)+"o", " ")
				put(t, b, names...)
				start, soon, late := time.Now(), 0, 0
				drain(t, b, handler(func(_ context.Context, o []string) error {
					orders = append(orders, o...)
					if time.Since(start) > 0 {
						late++
					} else {
						soon++
					}
					return nil
				}))
				stats := b.Stats()
				if stats.Duplicates < 40 || stats.Duplicates > 80 || stats.Done != 200+stats.Duplicates || soon+late != stats.Done {
					t.Errorf("with %+v stats are %v, want 40 to 80 duplicates of 200", s, stats)
				}
				switch fifo := s != nil && s.FIFO; {
				case fifo && late > 0:
					t.Errorf("with %+v %d copies come later, want none", s, late)
				case !fifo && (late < stats.Duplicates/4 || late > stats.Duplicates*3/4 || time.Since(start) > time.Minute):
					t.Errorf("with %+v %d of %d copies come later, the last after %v, want about half, within a minute", s, late, stats.Duplicates, time.Since(start))
				}
				for _, h := range b.Histories() {
					if len(h.Delivered) > 2 {
						t.Errorf("with %+v event came %d times, want at most twice", s, len(h.Delivered))
					}
					if fifo := s != nil && s.FIFO; fifo && len(h.Delivered) == 2 && h.Delivered[0] != h.Delivered[1] {
						t.Errorf("with %+v a copy came later", s)
					}
				}
			})
			return orders
		}
		if diff := cmp.Diff(run(), run()); diff != "" {
			t.Errorf("with %+v two runs (-first +second):\n%s", s, diff)
		}
	}
}

// A replay has the events of a time, with their ids, minute by minute, and in any order within one.
func TestReplay(t *testing.T) {
	for _, s := range []*subscriber{nil, {MaxBatchSize: 1, WithMetadata: true, FIFO: true}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBus(t, "orders", func(o *eventbridgetest.Options) { o.Subscriber, o.Seed = s, 1 })
			start := time.Now()
			var ids []string
			for _, o := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4", "c1"} {
				ids = append(ids, putIn(t, b, "", o))
				time.Sleep(15 * time.Second)
			}
			backdated := order("z")
			backdated.Time = start.Add(-1)
			if _, err := b.Put(backdated); err != nil {
				t.Fatal(err)
			}
			seen := map[string]int{}
			var replayed []string
			h := lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
				orders, err := ordersOf(payload)
				if strings.Contains(string(payload), `"replay-name":"again"`) || strings.Contains(string(payload), `"REPLAY"`) {
					replayed = append(replayed, orders...)
				}
				for _, id := range ids {
					if strings.Contains(string(payload), id) {
						seen[id]++
					}
				}
				return nil, err
			})
			drain(t, b, h)
			if n, err := b.Replay(start, start.Add(2*time.Minute), "again"); n != 9 || err != nil {
				t.Errorf("Replay returned %d and %v, want 9", n, err)
			}
			if stats := b.Stats(); stats.Replayed != 9 || stats.Waiting != 9 || stats.Put != 10 {
				t.Errorf("stats are %v, want 9 replayed and waiting", stats)
			}
			drain(t, b, h)
			if len(seen) != 9 || len(replayed) != 9 {
				t.Fatalf("replayed are %v with %d ids, want 9", replayed, len(seen))
			}
			inOrder := "a1 a2 a3 a4 b1 b2 b3 b4 c1"
			got := strings.Join(replayed, " ")
			if s != nil && got != inOrder || s == nil && got == inOrder {
				t.Errorf("with %+v the replay is in the order %s", s, got)
			}
			for i, o := range replayed {
				if o[0] != inOrder[3*i] {
					t.Errorf("with %+v the replay is in the order %s, want one minute after the other", s, got)
				}
			}
			for id, n := range seen {
				if n != 2 {
					t.Errorf("event %s came %d times, want twice", id, n)
				}
			}
			// The limits are included, and what was replayed is not replayed again.
			if n, err := b.Replay(start.Add(15*time.Second), start.Add(30*time.Second), "part"); n != 2 || err != nil {
				t.Errorf("Replay of a part returned %d and %v, want 2", n, err)
			}
		})
	}
}

func TestReplayRefuses(t *testing.T) {
	b := newBus(t, "orders")
	now := time.Now()
	if _, err := b.Replay(now, now, "used"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		to   time.Time
		want string
	}{
		{"", now, `replay name is "", but must be 1 to 64`},
		{"a/b", now, `replay name is "a/b"`},
		{strings.Repeat("a", 65), now, "1 to 64"},
		{"backwards", now.Add(-1), "but must end after it begins"},
		{"used", now, `bus "orders" has had a replay "used"`},
	} {
		if n, err := b.Replay(now, test.to, test.name); n != 0 || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Replay %q returned %d and error %v, want one with %q", test.name, n, err, test.want)
		}
	}
}
