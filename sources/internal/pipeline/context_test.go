package pipeline_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// When a handler's context ends, and why. Where the batch's cut comes before the ends of the leases, all records share the
// batch's context: none is made for each. A handler has all of its timeout, however long its claim took.
func TestHandlerContextEnds(t *testing.T) {
	for _, test := range []struct {
		name                    string
		reserve, lease, timeout time.Duration
		want                    time.Duration
		cause                   error
		shared                  bool
	}{
		{"default reserve", 0, 0, 0, 59 * time.Second, batch.ErrDeadlineNear, true},
		{"short reserve", 100 * time.Millisecond, 0, 0, 59900 * time.Millisecond, batch.ErrDeadlineNear, true},
		{"no reserve", -1, 0, 0, 59 * time.Second, idempotency.ErrLeaseEnding, false},
		{"long reserve", 10 * time.Second, 0, 0, 50 * time.Second, batch.ErrDeadlineNear, true},
		{"lease longer than the invocation", 100 * time.Millisecond, time.Hour, 0, 59900 * time.Millisecond, batch.ErrDeadlineNear, true},
		{"lease shorter than the invocation", 0, 30 * time.Second, 0, 29 * time.Second, idempotency.ErrLeaseEnding, false},
		{"timeout", 0, 0, 20 * time.Second, 20 * time.Second, batch.ErrTimeout, false},
		{"lease shorter than the timeout", 0, 10 * time.Second, 20 * time.Second, 9 * time.Second, idempotency.ErrLeaseEnding, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begin := time.Now()
				ends := make(chan (<-chan struct{}), 2)
				s := &source{identities: keys("k", "l"), handle: func(ctx context.Context, _ int) error {
					begin := begin
					if test.cause == batch.ErrTimeout {
						begin = time.Now()
					}
					ends <- ctx.Done()
					<-ctx.Done()
					if got := time.Since(begin); got != test.want || context.Cause(ctx) != test.cause {
						t.Errorf("context ended after %v with %v, want %v and %v", got, context.Cause(ctx), test.want, test.cause)
					}
					if info, _ := idempotency.FromContext(ctx); info.LeaseLeft() <= 0 {
						t.Error("the lease ended before the context, want it after")
					}
					return nil
				}}
				store := &faults{claimed: func() {
					if test.cause == batch.ErrTimeout {
						time.Sleep(200 * time.Millisecond)
					}
				}}
				guard := newGuard(t, store, func(o *idempotency.Options) { o.Lease = test.lease })
				options := &batch.Options{Reserve: test.reserve, Timeout: test.timeout}
				wantOutcomes(t, run(ctx, s, &pipeline.Config{Guard: guard, Batch: options}), batch.Succeeded, batch.Succeeded)
				first, second := <-ends, <-ends
				if shared := first == second; shared != test.shared {
					t.Errorf("records share a context: %v, want %v", shared, test.shared)
				}
			})
		})
	}
}

// The sink works inside the claim, which lasts long enough for it where the handler has used up its own time, and leaves
// time to complete or release the claim.
func TestSinkContext(t *testing.T) {
	own, business := pipeline.Identity{Key: "k", Own: true}, pipeline.Identity{Key: "k"}
	for _, test := range []struct {
		name           string
		identity       pipeline.Identity
		timeout, lease time.Duration
		held           time.Duration // the claim's lease
		handler, sink  time.Duration // the ends of their contexts
		works          time.Duration // the sink
	}{
		{"timeout", own, 20 * time.Second, 0, 26 * time.Second, 20 * time.Second, 25500 * time.Millisecond, 5 * time.Second},
		{"timeout, business key", business, 20 * time.Second, 0, 26 * time.Second, 20 * time.Second, 25500 * time.Millisecond, 5 * time.Second},
		{"lease", own, 0, 10 * time.Second, 10 * time.Second, 9 * time.Second, 9500 * time.Millisecond, 500 * time.Millisecond},
		{"no timeout", own, 0, 0, time.Minute, 59 * time.Second, 59500 * time.Millisecond, 400 * time.Millisecond},
		{"endless timeout", own, math.MaxInt64, 0, time.Minute, 59 * time.Second, 59500 * time.Millisecond, 400 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begin := time.Now()
				s := &source{identities: []pipeline.Identity{test.identity}, handle: func(ctx context.Context, _ int) error {
					<-ctx.Done()
					if got := time.Since(begin); got != test.handler {
						t.Errorf("handler's context ended after %v, want %v", got, test.handler)
					}
					return batch.Permanent(errors.New("poison"))
				}}
				store := &faults{}
				guard := newGuard(t, store, func(o *idempotency.Options) { o.Lease = test.lease })
				options := &batch.Options{Timeout: test.timeout}
				options.DeadLetter = func(ctx context.Context, _ *batch.Record, _ error) error {
					info, ok := idempotency.FromContext(ctx)
					if !ok || info.Key != "k" || info.Lease.Sub(begin) != test.held {
						t.Errorf("claim in the sink's context: %+v, want one of k for %v", info, test.held)
					}
					if end, ok := ctx.Deadline(); !ok || end.Sub(begin) != test.sink {
						t.Errorf("sink's context ends after %v, want %v", end.Sub(begin), test.sink)
					}
					time.Sleep(test.works)
					return nil
				}
				report := run(ctx, s, &pipeline.Config{Guard: guard, Batch: options})
				wantOutcomes(t, report, batch.DeadLettered)
				var completions, releases int32 = 1, 0
				if !test.identity.Own {
					completions, releases = 0, 1
				}
				if report.Results[0].Unrecorded || store.completes.Load() != completions || store.releases.Load() != releases {
					t.Errorf("unrecorded: %v, %d completions, %d releases, want %d and %d", report.Results[0].Unrecorded,
						store.completes.Load(), store.releases.Load(), completions, releases)
				}
			})
		})
	}
}

// Of two records with one key, of which one has no fingerprint, nobody can tell whether they are the same. The second one
// fails, for now: when it comes back, what the first has left in the store decides.
func TestTwinsWithoutFingerprint(t *testing.T) {
	for _, fingerprints := range [][2]string{{"", "f"}, {"f", ""}} {
		for _, fails := range []bool{false, true} {
			s := &source{}
			for _, f := range fingerprints {
				s.identities = append(s.identities, pipeline.Identity{Key: "k", Fingerprint: f})
			}
			s.handle = func(context.Context, int) error {
				if fails {
					return errors.New("no")
				}
				return nil
			}
			config := &pipeline.Config{Guard: newGuard(t, &idempotency.MemoryStore{}), Batch: &batch.Options{Concurrency: 1}}
			report := run(t.Context(), s, config)
			first, again := batch.Succeeded, batch.Replayed
			if fails {
				first, again = batch.Failed, batch.Succeeded
			}
			wantOutcomes(t, report, first, batch.Failed)
			if err := report.Results[1].Err; !errors.Is(err, idempotency.ErrFingerprintMismatch) || batch.IsPermanent(err) {
				t.Errorf("error is %v, want %v for now", err, idempotency.ErrFingerprintMismatch)
			}
			s.wantRan(t, 0)

			s.identities, s.handle = s.identities[1:], nil
			wantOutcomes(t, run(t.Context(), s, config), again)
		}
	}
}
