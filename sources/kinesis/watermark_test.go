package kinesis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
	"github.com/oncekit/oncekit/sources/kinesis"
)

const consumer = "clicks-counter"

// marks is a store of watermarks that notes its calls, and fails as the functions say.
type marks struct {
	watermark.MemoryStore
	claim, advance func() error // before the write
	advanced       func() error // after it: the reply is lost

	mu       sync.Mutex
	claims   []watermark.ClaimRequest
	advances []watermark.AdvanceRequest
}

func (s *marks) Claim(ctx context.Context, r watermark.ClaimRequest) (watermark.Position, error) {
	s.mu.Lock()
	s.claims = append(s.claims, r)
	s.mu.Unlock()
	if err := call(s.claim); err != nil {
		return watermark.Position{}, err
	}
	return s.MemoryStore.Claim(ctx, r)
}

func (s *marks) Advance(ctx context.Context, r watermark.AdvanceRequest) error {
	s.mu.Lock()
	s.advances = append(s.advances, r)
	s.mu.Unlock()
	if err := call(s.advance); err != nil {
		return err
	}
	if err := s.MemoryStore.Advance(ctx, r); err != nil {
		return err
	}
	return call(s.advanced)
}

// option makes the store that of a handler.
func (s *marks) option(o *kinesis.Options) {
	o.Watermark = kinesis.AssumeParallelizationFactorOne(consumer, s)
}

// wantPosition checks how far the shard has come, and that nobody has it.
func (s *marks) wantPosition(t *testing.T, want string) {
	t.Helper()
	now := time.Now()
	r := watermark.ClaimRequest{
		Key: watermark.Key(consumer, clicksARN, shardID), Owner: rand.Text(), Now: now, Lease: now.Add(time.Second), Expiry: now.Add(time.Hour),
	}
	position, err := s.MemoryStore.Claim(t.Context(), r)
	if err != nil || position.String() != want {
		t.Errorf("position is %q, error is %v, want %q", position, err, want)
		return
	}
	release := watermark.AdvanceRequest{Key: r.Key, Owner: r.Owner, Now: now, Expiry: now.Add(8 * 24 * time.Hour), Release: true}
	if err := s.MemoryStore.Advance(t.Context(), release); err != nil {
		t.Error(err)
	}
}

// Records at or before the position are skipped, those behind it run one at a time up to the first failure, and the position
// is moved on to it. A batch costs two writes.
func TestWatermark(t *testing.T) {
	var store marks
	w := &worker{errs: failing("c")}
	h := newHandler(t, w.handle, store.option)
	data := []string{"a", "b", "c", "d", "e"}
	wantCheckpoint(t, t.Context(), h, event(keyed(data...)...), sequence(2))
	w.wantOrder(t, "a", "b", "c")
	store.wantPosition(t, sequence(1))

	wantCheckpoint(t, t.Context(), h, event(keyed(data...)...), sequence(2)) // the answer was lost
	w.wantOrder(t, "c")
	store.wantPosition(t, sequence(1))

	w.errs = failing("e")
	wantCheckpoint(t, t.Context(), h, event(keyed(data...)[2:]...), sequence(4))
	w.wantOrder(t, "c", "d", "e")
	store.wantPosition(t, sequence(3))

	w.errs = nil
	for range 2 {
		wantCheckpoint(t, t.Context(), h, event(keyed(data...)...), "")
		store.wantPosition(t, sequence(4))
	}
	w.wantOrder(t, "e")
	if len(store.claims) != 5 || len(store.advances) != 5 {
		t.Errorf("%d claims and %d advances for 5 batches, want one of each", len(store.claims), len(store.advances))
	}
	for i, r := range store.advances {
		if !r.Release || r.Owner != store.claims[i].Owner {
			t.Errorf("advance %d is %+v, want it to release the claim", i, r)
		}
	}
	owners := map[string]bool{}
	for _, r := range store.claims {
		owners[r.Owner] = true
	}
	if len(owners) != 5 {
		t.Errorf("%d owners, want one for each claim", len(owners))
	}
	// What costs least where nothing was done.
	if to := store.advances[1].To; !to.IsZero() {
		t.Errorf("a batch that did nothing advanced to %v, want the zero position", to)
	}
}

// Each shard, stream and consumer has a position of its own; the way in which a stream is read does not matter.
func TestWatermarkKeys(t *testing.T) {
	var store marks
	w := &worker{}
	h := newHandler(t, w.handle, store.option)
	r := record{Data: "a", Key: "a", N: 5}
	for _, test := range []struct {
		r    record
		want []string
	}{
		{r, []string{"a"}}, {record{Data: "b", Key: "b", N: 5, Shard: otherShard}, []string{"b"}},
		{record{Data: "c", Key: "c", N: 5, ARN: clicksARN + "2"}, []string{"c"}},
		{record{Data: "d", Key: "d", N: 5, ARN: consumerARN}, nil}, {record{Data: "e", Key: "e", N: 4}, nil},
	} {
		wantCheckpoint(t, t.Context(), h, event(test.r), "")
		w.wantOrder(t, test.want...)
	}
	other := newHandler(t, w.handle, func(o *kinesis.Options) { o.Watermark = kinesis.AssumeParallelizationFactorOne("another", &store) })
	wantCheckpoint(t, t.Context(), other, event(r), "")
	w.wantOrder(t, "a")
}

// Numbers of different lengths are compared as numbers.
func TestWatermarkComparesNumbers(t *testing.T) {
	var store marks
	w := &worker{}
	h := newHandler(t, w.handle, store.option)
	for _, step := range []struct {
		number string
		ran    bool
	}{{"9", true}, {"10", true}, {"9", false}, {"0010", false}, {"100000000000000000000000000000000000000000000000000000000", true}, {"99", false}} {
		text := change(record{Data: step.number, Key: "a"}, sequence(0), step.number)
		wantCheckpoint(t, t.Context(), h, rawEvent(text), "")
		if got := len(w.take()) == 1; got != step.ran {
			t.Errorf("record %s ran: %v, want %v", step.number, got, step.ran)
		}
	}
}

// The records of an aggregate have positions of their own, so that those in front of a failure do not run again.
func TestWatermarkInAnAggregate(t *testing.T) {
	var store marks
	w := &worker{errs: failing("z")}
	h := newHandler(t, w.handle, store.option)
	payload := event(record{Data: "a", Key: "a"}, record{Data: aggregate("x", "y", "z"), Key: "p", N: 1}, record{Data: "b", Key: "b", N: 2})
	wantCheckpoint(t, t.Context(), h, payload, sequence(1))
	w.wantOrder(t, "a", "x", "y", "z")
	store.wantPosition(t, sequence(1)+"/1")
	w.errs = failing("b")
	wantCheckpoint(t, t.Context(), h, payload, sequence(2))
	w.wantOrder(t, "z", "b")
	store.wantPosition(t, sequence(1)+"/2")
	// To keep aggregates from now on repeats the last, and skips nothing.
	w.errs = nil
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle, store.option, keepAggregates), payload, "")
	w.wantOrder(t, aggregate("x", "y", "z"), "b")
	wantCheckpoint(t, t.Context(), h, payload, "")
	w.wantOrder(t)
}

// Where the first record fails, and where nothing is to be done, the shard is given back where it was.
func TestWatermarkWithNothingDone(t *testing.T) {
	var store marks
	w := &worker{errs: failing("a")}
	h := newHandler(t, w.handle, store.option)
	wantCheckpoint(t, t.Context(), h, event(keyed("a", "b")...), sequence(0))
	store.wantPosition(t, "")
	wantCheckpoint(t, t.Context(), h, event(), "")
	wantCheckpoint(t, t.Context(), h, event(record{Data: aggregate(), Key: "p"}), "")
	store.wantPosition(t, "")
	past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	w.take()
	wantInvokeError(t, past, h, event(keyed("a", "b")...), "kinesis: ")
	w.wantOrder(t)
	store.wantPosition(t, "")
}

// A record that fails because it cannot be read is a failure like any other: the position stays before it.
func TestWatermarkBeforeABadRecord(t *testing.T) {
	for _, bad := range []string{
		change(record{Data: "b", Key: "b", N: 1}, `"data":"Yg=="`, `"data":7`), record{Data: brokenAggregate, Key: "b", N: 1}.json(),
	} {
		var store marks
		w := &worker{}
		payload := rawEvent(record{Data: "a", Key: "a"}.json(), bad, record{Data: "c", Key: "c", N: 2}.json())
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, store.option), payload, sequence(1))
		w.wantOrder(t, "a")
		store.wantPosition(t, sequence(0))
	}
}

// A record without a usable sequence number is no place. The position is that of the last which is one, and the shard is
// given back.
func TestWatermarkOfARecordWithoutAPlace(t *testing.T) {
	for _, value := range []string{`"x":0`, `"sequenceNumber":"4959x"`} {
		synctest.Test(t, func(t *testing.T) {
			var store marks
			w := &worker{}
			h := newHandler(t, w.handle, store.option)
			payload := rawEvent(record{Data: "a", Key: "a"}.json(),
				change(record{Data: "b", Key: "b", N: 1}, `"sequenceNumber":"`+sequence(1)+`"`, value))
			wantCheckpoint(t, t.Context(), h, payload, "")
			w.wantOrder(t, "a", "b")
			store.wantPosition(t, sequence(0))
		})
	}
}

// While another has the shard nothing runs. The batch waits for it, and goes on from the position that it left, or gives up.
func TestWatermarkHeldElsewhere(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration // of the second, 0: none
		holds   time.Duration
		err     bool
	}{
		{"in time", time.Minute, 5 * time.Second, false},
		{"not in time", 10 * time.Second, 20 * time.Second, true},
		{"without a deadline", 0, 5 * time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store marks
				first := &worker{work: func(context.Context, *kinesis.Record[string]) error { time.Sleep(test.holds); return nil }}
				var running sync.WaitGroup
				running.Go(func() {
					wantCheckpoint(t, t.Context(), newHandler(t, first.handle, store.option), event(keyed("a")...), "")
				})
				synctest.Wait()
				ctx := t.Context()
				if test.timeout > 0 {
					limited, cancel := context.WithTimeout(ctx, test.timeout)
					defer cancel()
					ctx = limited
				}
				w := &worker{}
				h := newHandler(t, w.handle, store.option)
				begin := time.Now()
				if test.err {
					_, err := h.Invoke(ctx, event(keyed("a", "b")...))
					if !errors.Is(err, idempotency.ErrInProgress) {
						t.Errorf("error is %v, want %v", err, idempotency.ErrInProgress)
					}
					wantError(t, err, "kinesis: no record ran, since the shard's watermark could not be claimed")
					if took := time.Since(begin); took >= test.timeout {
						t.Errorf("gave up after %v, want before the deadline", took)
					}
					w.wantOrder(t)
				} else {
					wantCheckpoint(t, ctx, h, event(keyed("a", "b")...), "")
					w.wantOrder(t, "b")
				}
				running.Wait()
			})
		})
	}
}

// A shard whose holder crashed is taken over when its lease and the skew are over.
func TestWatermarkTakeover(t *testing.T) {
	for _, test := range []struct {
		skew, want time.Duration
	}{{0, idempotency.DefaultSkew}, {5 * time.Second, 5 * time.Second}, {-1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var store marks
			now := time.Now()
			_, err := store.MemoryStore.Claim(t.Context(), watermark.ClaimRequest{
				Key: watermark.Key(consumer, clicksARN, shardID), Owner: "crashed", Now: now, Lease: now.Add(10 * time.Second), Expiry: now.Add(time.Hour),
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			w := &worker{}
			h := newHandler(t, w.handle, func(o *kinesis.Options) {
				o.Watermark = kinesis.AssumeParallelizationFactorOne(consumer, &store, func(o *kinesis.WatermarkOptions) { o.Skew = test.skew })
			})
			wantCheckpoint(t, ctx, h, event(keyed("a")...), "")
			w.wantOrder(t, "a")
			if took := time.Since(now) - 10*time.Second; took < test.want || took > test.want+10*time.Millisecond {
				t.Errorf("taken over %v after the lease, want %v", took, test.want)
			}
		})
	}
}

// Who rewinds takes the shard from a batch that runs, whose records then come back as a whole.
func TestWatermarkRewound(t *testing.T) {
	var store marks
	w := &worker{}
	h := newHandler(t, w.handle, store.option)
	wantCheckpoint(t, t.Context(), h, event(keyed("a", "b", "c")...), "")
	w.take()
	w.work = func(ctx context.Context, r *kinesis.Record[string]) error {
		if r.Data == "d" {
			return watermark.Rewind(ctx, &store, consumer, clicksARN, shardID, watermark.Position{Sequence: sequence(0), Sub: watermark.Whole})
		}
		return nil
	}
	_, err := h.Invoke(t.Context(), event(keyed("a", "b", "c", "d", "e")...))
	if !errors.Is(err, idempotency.ErrClaimLost) {
		t.Errorf("error is %v, want %v", err, idempotency.ErrClaimLost)
	}
	wantError(t, err, "kinesis: shard was taken over while its records ran, so the whole batch has to come back")
	w.take()
	w.work = nil
	wantCheckpoint(t, t.Context(), h, event(keyed("a", "b", "c", "d", "e")...), "")
	w.wantOrder(t, "b", "c", "d", "e")
}

// A position that could not be stored leaves done what is done. It is said, and a redelivery may run again.
func TestWatermarkNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged logs
		store := marks{advance: func() error { return errStore }}
		w := &worker{errs: failing("c")}
		h := newHandler(t, w.handle, store.option, logged.option)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantCheckpoint(t, ctx, h, event(keyed("a", "b", "c")...), sequence(2))
		if len(store.advances) != 3 {
			t.Errorf("%d tries to advance, want 3", len(store.advances))
		}
		if lines := logged.About(t, "position in the shard was not stored, so a redelivery may run again"); len(lines) != 1 || lines[0].Error != errStore.Error() {
			t.Errorf("lines are %+v, want one with %v", lines, errStore)
		}
		// The first reply is lost, the write is not.
		store = marks{}
		fail := true
		store.advanced = func() error {
			if fail {
				fail = false
				return errStore
			}
			return nil
		}
		wantCheckpoint(t, ctx, newHandler(t, w.handle, store.option), event(keyed("a", "b", "c")...), sequence(2))
		store.wantPosition(t, sequence(1))
	})
}

// A claim that cannot be decided lets nothing run, and is given back if it was made.
func TestWatermarkNotClaimed(t *testing.T) {
	store := marks{claim: func() error { return errStore }}
	w := &worker{}
	_, err := newHandler(t, w.handle, store.option).Invoke(t.Context(), event(keyed("a")...))
	if !errors.Is(err, errStore) {
		t.Errorf("error is %v, want %v", err, errStore)
	}
	w.wantOrder(t)
	if len(store.advances) != 1 || store.advances[0].Owner != store.claims[0].Owner || !store.advances[0].To.IsZero() {
		t.Errorf("advances are %+v, want one that gives the claim back", store.advances)
	}
}

// The position lives as long as the stream's retention, also where it does not move.
func TestWatermarkRetention(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct{ retention, want time.Duration }{{0, 8 * day}, {366 * day, 366 * day}, {time.Hour, time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			var store marks
			w := &worker{}
			h := newHandler(t, w.handle, func(o *kinesis.Options) {
				o.Watermark = kinesis.AssumeParallelizationFactorOne(consumer, &store, nil, func(o *kinesis.WatermarkOptions) { o.Retention = test.retention })
			})
			for _, step := range []struct {
				after time.Duration
				want  []string
			}{{0, []string{"a"}}, {test.want, nil}, {test.want, nil}, {test.want + 3*time.Second, []string{"a"}}} {
				time.Sleep(step.after)
				wantCheckpoint(t, t.Context(), h, event(record{Data: "a", Key: "a"}), "")
				w.wantOrder(t, step.want...)
			}
		})
	}
}

// Without a deadline a batch has the shard for as long as the default lease, and answers in that time.
func TestWatermarkWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store marks
		w := &worker{work: func(context.Context, *kinesis.Record[string]) error { time.Sleep(20 * time.Second); return nil }}
		h := newHandler(t, w.handle, store.option)
		begin := time.Now()
		wantCheckpoint(t, t.Context(), h, event(keyed("a", "b", "c", "d")...), sequence(2))
		if took := time.Since(begin); took > idempotency.DefaultLease {
			t.Errorf("the answer took %v, want less than the lease", took)
		}
		if lease := store.claims[0].Lease.Sub(begin); lease != idempotency.DefaultLease {
			t.Errorf("lease is %v, want %v", lease, idempotency.DefaultLease)
		}
		time.Sleep(time.Minute) // the handler that was abandoned keeps the shard until the lease ends
		store.wantPosition(t, sequence(1))
	})
}

// An abandoned handler keeps the shard until the lease ends. What it finishes moves no position: its record comes again.
func TestWatermarkOfAStraggler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store marks
		release := make(chan struct{})
		w := &worker{work: func(_ context.Context, r *kinesis.Record[string]) error {
			if r.Data == "b" {
				<-release
			}
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		wantCheckpoint(t, ctx, newHandler(t, w.handle, store.option), event(keyed("a", "b", "c")...), sequence(1))
		w.wantOrder(t, "a", "b")
		soon, cancelSoon := context.WithTimeout(t.Context(), time.Second/4)
		defer cancelSoon()
		h := newHandler(t, w.handle, store.option)
		wantInvokeError(t, soon, h, event(keyed("a", "b", "c")...), idempotency.ErrInProgress.Error())
		w.wantOrder(t)
		close(release)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		store.wantPosition(t, sequence(0))
	})
}

// A watermark is a place in one shard: an event of two, or of none, is refused, and nothing of it runs.
func TestWatermarkOfMixedShards(t *testing.T) {
	for _, test := range []struct {
		name    string
		records []string
		want    []string
	}{
		{"two shards", []string{record{Data: "a", Key: "a"}.json(), record{Data: "b", Key: "b", N: 1, Shard: otherShard}.json()}, []string{shardID, otherShard}},
		{"two streams", []string{record{Data: "a", Key: "a"}.json(), record{Data: "b", Key: "b", N: 1, ARN: clicksARN + "2"}.json()}, []string{clicksARN + "2"}},
		{"no shard", []string{change(record{Data: "a", Key: "a"}, `"eventID"`, `"x"`)}, nil},
		{"no stream", []string{change(record{Data: "a", Key: "a"}, `"eventSourceARN"`, `"x"`)}, nil},
		{"nothing", []string{"null"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var store marks
			w := &worker{}
			wantInvokeError(t, t.Context(), newHandler(t, w.handle, store.option), rawEvent(test.records...),
				append(test.want, "kinesis: ", "a watermark is a place in a shard")...)
			w.wantOrder(t)
			if len(store.claims) != 0 {
				t.Errorf("claims are %+v, want none", store.claims)
			}
		})
	}
}

// Records of which the others' shard is known are of it.
func TestWatermarkOfARecordWithoutAnID(t *testing.T) {
	var store marks
	w := &worker{}
	payload := rawEvent(change(record{Data: "a", Key: "a"}, `"eventID"`, `"x"`), record{Data: "b", Key: "b", N: 1}.json())
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle, store.option), payload, "")
	w.wantOrder(t, "a", "b")
	store.wantPosition(t, sequence(1))
}

func TestWatermarkOptionErrors(t *testing.T) {
	mark := func(consumer string, store watermark.Store, retention time.Duration) func(*kinesis.Options) {
		return func(o *kinesis.Options) {
			o.Watermark = kinesis.AssumeParallelizationFactorOne(consumer, store, func(o *kinesis.WatermarkOptions) { o.Retention = retention })
		}
	}
	good := mark("c", watermark.NewMemoryStore(), 0)
	for _, test := range []struct {
		options []func(*kinesis.Options)
		want    string
	}{
		{[]func(*kinesis.Options){mark("", watermark.NewMemoryStore(), 0)}, "kinesis: consumer of the watermark is empty, want a name"},
		{[]func(*kinesis.Options){mark("c", nil, 0)}, "kinesis: store of the watermark is nil, want a watermark.Store"},
		{[]func(*kinesis.Options){mark("c", watermark.NewMemoryStore(), time.Minute)},
			"kinesis: WatermarkOptions.Retention is 1m0s, want 0 (for 192h0m0s) or 1h to 8784h0m0s"},
		{[]func(*kinesis.Options){mark("c", watermark.NewMemoryStore(), 367*24*time.Hour)}, "WatermarkOptions.Retention is 8808h0m0s"},
		{[]func(*kinesis.Options){good, guarded(t)}, "kinesis: both Options.Watermark and Options.Idempotency are set, want one"},
		{[]func(*kinesis.Options){good, concurrency(2)}, "kinesis: Options.Concurrency is 2, want 0 or 1 with Options.Watermark"},
		{[]func(*kinesis.Options){mark("c", invalidMarks{}, 0)}, "no table"},
	} {
		_, err := kinesis.NewHandler((&worker{}).handle, test.options...)
		wantError(t, err, test.want)
	}
	_, err := kinesis.NewWindowHandler(count, (&ended[tally]{}).finish, good)
	wantError(t, err, "kinesis: Options.Watermark is set, want none in a handler of windows")
	if _, err := kinesis.NewHandler((&worker{}).handle, good, concurrency(1), serial); err != nil {
		t.Error(err)
	}
}

// invalidMarks is a store that knows that it cannot work.
type invalidMarks struct{ watermark.Store }

func (invalidMarks) Validate() error { return errors.New("no table") }

// Shards that split go on: the children have positions of their own.
func TestWatermarkResharding(t *testing.T) {
	var store marks
	w := &worker{}
	h := newHandler(t, w.handle, store.option)
	var want []string
	for i, shard := range []string{shardID, shardID, otherShard, "shardId-000000000008", otherShard} {
		data := strings.Repeat("x", i+1)
		wantCheckpoint(t, t.Context(), h, event(record{Data: data, Key: "x", N: i, Shard: shard}), "")
		want = append(want, data)
	}
	if diff := cmp.Diff(want, w.take()); diff != "" {
		t.Errorf("records that ran (-want +got):\n%s", diff)
	}
}

// call calls f, unless it is nil.
func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}
