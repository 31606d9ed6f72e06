package kinesis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// spans notes when records run, in virtual time, each for as long as its place in the batch says.
type spans struct {
	mu   sync.Mutex
	text []string
}

func (s *spans) work(_ context.Context, r *kinesis.Record[string]) error {
	s.note("begin " + r.Data)
	time.Sleep(time.Second)
	s.note("end " + r.Data)
	return nil
}

func (s *spans) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, text)
}

// of returns the notes about data that begin with the letter.
func (s *spans) of(letter string) (notes []string) {
	for _, n := range s.text {
		if _, data, _ := strings.Cut(n, " "); strings.HasPrefix(data, letter) {
			notes = append(notes, n)
		}
	}
	return notes
}

// Records of one partition key run one after the other, in their order. Those of several run at once with a guard, or where
// the user asks for it.
func TestLanes(t *testing.T) {
	records := keyed("a1", "b1", "a2", "c1", "b2", "a3")
	for _, test := range []struct {
		name    string
		options []func(*kinesis.Options)
		took    time.Duration
	}{
		{"guard", []func(*kinesis.Options){guarded(t)}, 3 * time.Second},
		{"guard, concurrency 2", []func(*kinesis.Options){guarded(t), concurrency(2)}, 3 * time.Second},
		{"guard, concurrency 1", []func(*kinesis.Options){guarded(t), concurrency(1)}, 6 * time.Second},
		{"guard, serial", []func(*kinesis.Options){guarded(t), concurrency(10), serial}, 6 * time.Second},
		{"no guard", nil, 6 * time.Second},
		{"no guard, concurrency 1", []func(*kinesis.Options){concurrency(1)}, 6 * time.Second},
		{"no guard, concurrency 4", []func(*kinesis.Options){concurrency(4)}, 3 * time.Second},
		{"no guard, concurrency 4, serial", []func(*kinesis.Options){concurrency(4), serial}, 6 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s spans
				begin := time.Now()
				w := &worker{work: s.work}
				wantCheckpoint(t, t.Context(), newHandler(t, w.handle, test.options...), event(records...), "")
				took := time.Since(begin)
				if inBulk && test.name == "guard, concurrency 2" && took == 4*time.Second {
					took = test.took // it is left to chance whether a2 or b2, ready at one moment, is claimed first, and so when a3 is
				}
				if took != test.took {
					t.Errorf("the batch took %v, want %v", took, test.took)
				}
				want := []string{"begin a1", "end a1", "begin a2", "end a2", "begin a3", "end a3"}
				if diff := cmp.Diff(want, s.of("a")); diff != "" {
					t.Errorf("records of a (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{"begin b1", "end b1", "begin b2", "end b2"}, s.of("b")); diff != "" {
					t.Errorf("records of b (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Records without a partition key are in one order, whatever stands in its place. Others run beside them.
func TestLanesWithoutPartitionKey(t *testing.T) {
	key := func(i int) string { return fmt.Sprintf(`"partitionKey":"p%d",`, i) }
	for _, isGuarded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var records []string
			for i, other := range []string{``, `"partitionKey":null,`, `"partitionKey":"",`, `"partitionKey":7,`, key(4), key(5)} {
				records = append(records, change(record{Data: fmt.Sprint("n", i), Key: fmt.Sprint("p", i), N: i}, key(i), other))
			}
			records[4] = strings.Replace(records[4], "bjQ=", "cTQ=", 1) // q4 and q5
			records[5] = strings.Replace(records[5], "bjU=", "cTU=", 1)
			options := []func(*kinesis.Options){concurrency(10)}
			if isGuarded {
				options = append(options, guarded(t))
			}
			var s spans
			w := &worker{work: s.work}
			h := newHandler(t, w.handle, options...)
			begin := time.Now()
			wantCheckpoint(t, t.Context(), h, rawEvent(records...), "")
			if took := time.Since(begin); took != 4*time.Second {
				t.Errorf("the batch took %v, want 4s", took)
			}
			want := []string{"begin n0", "end n0", "begin n1", "end n1", "begin n2", "end n2", "begin n3", "end n3"}
			if diff := cmp.Diff(want, s.of("n")); diff != "" {
				t.Errorf("records without a key (-want +got):\n%s", diff)
			}
			w.want(t, "n0", "n1", "n2", "n3", "q4", "q5")
		})
	}
}

// Case 33: with a concurrency of 1 all runs in the order of the batch.
func TestLanesOfConcurrencyOne(t *testing.T) {
	for _, options := range [][]func(*kinesis.Options){{}, {guarded(t)}} {
		w := &worker{}
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, append(options, concurrency(1))...), event(keyed("a1", "b1", "a2", "c1", "b2")...), "")
		w.wantOrder(t, "a1", "b1", "a2", "c1", "b2")
	}
}

// A failure stops its own lane where a guard remembers what the others did, and everything in a serial shard.
func TestLanesBehindAFailure(t *testing.T) {
	records := keyed("a1", "b1", "a2", "c1", "a3", "b2")
	for _, n := range []int{1, 2, 10} {
		w := &worker{errs: failing("a1")}
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, concurrency(n), guarded(t)), event(records...), sequence(0))
		w.want(t, "a1", "b1", "b2", "c1")
		w.errs = failing("b1")
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, concurrency(n), guarded(t), serial), event(records...), sequence(1))
		w.wantOrder(t, "a1", "b1")
	}
}

// Without a guard and with more than one worker, nothing is started after a failure. What runs already goes on.
func TestLanesStopWithoutAGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{}
		w.work = func(_ context.Context, r *kinesis.Record[string]) error {
			if r.Data == "b1" {
				time.Sleep(time.Second)
				return errors.New("no")
			}
			time.Sleep(2 * time.Second)
			return nil
		}
		h := newHandler(t, w.handle, concurrency(4))
		wantCheckpoint(t, t.Context(), h, event(keyed("a1", "b1", "c1", "d1", "e1", "f1", "a2")...), sequence(1))
		w.want(t, "a1", "b1", "c1", "d1")
	})
}

// Where a missing key lets records run unprotected, a shard is serial too: what succeeded behind a failure would repeat.
func TestLanesUnprotected(t *testing.T) {
	byData := kinesis.KeyOf(func(s string) string { return strings.TrimPrefix(s, "a") })
	byView := func(o *kinesis.Options) {
		o.Key = func(v kinesis.View) (string, error) { return string(v.RawData()), nil }
	}
	records := keyed("a1", "b1", "c1")
	for _, option := range []func(*kinesis.Options){byData, byView} {
		w := &worker{errs: failing("b1")}
		h := newHandler(t, w.handle, guarded(t, unprotected), option)
		wantCheckpoint(t, t.Context(), h, event(records...), sequence(1))
		w.wantOrder(t, "a1", "b1")
	}
	// The record's own identity is never missing, so that all is protected.
	w := &worker{errs: failing("b1")}
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle, guarded(t, unprotected)), event(records...), sequence(1))
	w.want(t, "a1", "b1", "c1")
	// With more at once, by option, nothing starts after a failure.
	synctest.Test(t, func(t *testing.T) {
		w := &worker{work: func(_ context.Context, r *kinesis.Record[string]) error { time.Sleep(time.Second); return nil }, errs: failing("b1")}
		h := newHandler(t, w.handle, guarded(t, unprotected), byData, concurrency(2))
		wantCheckpoint(t, t.Context(), h, event(keyed("a1", "b1", "c1", "d1")...), sequence(1))
		got := w.take()
		if len(got) > 3 || !strings.Contains(strings.Join(got, " "), "b1") {
			t.Errorf("%v ran, want what began before b1 failed", got)
		}
	})
}

// hold takes the record's key, as a worker that is busy with it, or crashed, does.
func hold(t *testing.T, guard *idempotency.Guard, key string) *idempotency.Claim {
	t.Helper()
	claim, err := guard.Claim(t.Context(), idempotency.Request{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

// Rule 16: a record that is held elsewhere waits in its place, without a worker. Those of its key wait with it, others run.
// In a serial shard nothing behind it does. When the holder is done it is replayed, when the holder gave up it runs.
func TestLanesHeldElsewhere(t *testing.T) {
	for _, n := range []int{1, 2, 10} {
		for _, isSerial := range []bool{false, true} {
			for _, completes := range []bool{false, true} {
				t.Run(fmt.Sprintf("concurrency %d, serial %v, completes %v", n, isSerial, completes), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						guard := newGuard(t, idempotency.NewMemoryStore())
						claim := hold(t, guard, keyOf(0))
						w := &worker{}
						h := newHandler(t, w.handle, concurrency(n), func(o *kinesis.Options) { o.Idempotency, o.Serial = guard, isSerial })
						var first sync.WaitGroup
						first.Go(func() { wantCheckpoint(t, t.Context(), h, event(keyed("a1", "a2", "b1", "c1")...), "") })
						time.Sleep(5 * time.Second)
						if isSerial {
							w.wantOrder(t)
						} else {
							w.want(t, "b1", "c1")
						}
						settle := claim.Release
						if completes {
							settle = func(ctx context.Context) error { return claim.Complete(ctx, nil) }
						}
						if err := settle(t.Context()); err != nil {
							t.Error(err)
						}
						first.Wait()
						want := []string{"a1", "a2"}
						if completes {
							want = want[1:]
						}
						if isSerial {
							want = append(want, "b1", "c1")
						}
						w.wantOrder(t, want...)
					})
				})
			}
		}
	}
}

// Case 24a: the key of a worker that crashed is taken over when its lease is over, if there is so much time. If not, the
// record is told as failed, and those behind it are.
func TestLanesHeldByACrash(t *testing.T) {
	for _, test := range []struct {
		timeout time.Duration
		number  string
		want    []string
	}{
		{2 * time.Minute, "", []string{"a1", "a2"}},
		{30 * time.Second, sequence(0), nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			guard := newGuard(t, idempotency.NewMemoryStore()) // whose lease is a minute here
			hold(t, guard, keyOf(0))
			w := &worker{}
			h := newHandler(t, w.handle, func(o *kinesis.Options) { o.Idempotency = guard })
			ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
			defer cancel()
			begin := time.Now()
			wantCheckpoint(t, ctx, h, event(keyed("a1", "b1", "a2")...), test.number)
			w.want(t, append([]string{"b1"}, test.want...)...)
			if took := time.Since(begin); test.number != "" && took != 29*time.Second {
				t.Errorf("gave up after %v, want 29s: the record comes back at once", took)
			}
		})
	}
}
