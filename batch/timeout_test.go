package batch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

// Contexts end when what they are for has ended, so that nothing that was registered with the batch's own context stays
// there for as long as that lives.
func TestContextsAreReleased(t *testing.T) {
	for _, left := range []time.Duration{0, time.Hour} {
		for _, timeout := range []time.Duration{0, time.Minute} {
			ctx := t.Context()
			if left > 0 {
				ctx = within(t, left)
			}
			var handler, settler context.Context
			runStages(t, ctx, newRecords("a"), &stages{
				run: func(ctx context.Context, _ int) error { handler = ctx; return ctx.Err() },
				settle: func(ctx context.Context, _ int, s batch.Settlement) batch.Settlement {
					if timeout > 0 && handler.Err() == nil {
						t.Errorf("timeout %v: the handler's context outlives it", timeout)
					}
					settler = ctx
					return s
				},
			}, func(o *batch.Options) { o.Timeout = timeout })
			if handler.Err() == nil {
				t.Errorf("%v left, timeout %v: the handler's context outlives the batch", left, timeout)
			}
			if left > 0 && settler.Err() == nil {
				t.Errorf("%v left, timeout %v: the context for settling outlives the batch", left, timeout)
			}
		}
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		wake := make(chan struct{})
		report := process(t, within(t, time.Minute), newRecords("heeds quick A.1 A.2 ignores"), func(ctx context.Context, r *batch.Record) error {
			if end, _ := ctx.Deadline(); time.Until(end) != 2*time.Second {
				t.Errorf("%s has %v, want 2s", r.ID, time.Until(end))
			}
			switch r.ID {
			case "heeds":
				<-ctx.Done()
				if took := time.Since(begin); took != 2*time.Second {
					t.Errorf("cancelled after %v, want 2s", took)
				}
				return context.Cause(ctx)
			case "ignores":
				<-wake
			case "A.1":
				time.Sleep(3 * time.Second) // too long, but done
			}
			return nil
		}, func(o *batch.Options) { o.Timeout = 2 * time.Second })
		want := []string{"heeds failed: batch: handler timeout", "quick succeeded", "A.1 succeeded", "A.2 succeeded", "ignores" + abandoned}
		if diff := cmp.Diff(want, summary(report)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if err := report.Results[0].Err; err != batch.ErrTimeout {
			t.Errorf("cause = %v, want ErrTimeout", err)
		}
		close(wake)
		synctest.Wait()
	})
}

// The handler's context ends at whatever comes first: the batch's cut, the timeout, or the admission's deadline.
func TestHandlerDeadline(t *testing.T) {
	errLease := errors.New("the lease ends")
	for _, test := range []struct {
		name               string
		timeout, admission time.Duration
		want               time.Duration
		cause              error
	}{
		{"cut", time.Hour, time.Hour, 59 * time.Second, batch.ErrDeadlineNear},
		{"cut alone", 0, 0, 59 * time.Second, batch.ErrDeadlineNear},
		{"timeout", 5 * time.Second, 10 * time.Second, 5 * time.Second, batch.ErrTimeout},
		{"timeout alone", 5 * time.Second, 0, 5 * time.Second, batch.ErrTimeout},
		{"admission", 5 * time.Second, 4 * time.Second, 4 * time.Second, errLease},
		{"admission alone", 0, 4 * time.Second, 4 * time.Second, errLease},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				type key struct{}
				begin := time.Now()
				report := runStages(t, within(t, time.Minute), newRecords("a"), &stages{
					admit: func(ctx context.Context, _ int) batch.Admission {
						a := batch.Admission{Context: context.WithValue(ctx, key{}, "claim")}
						if test.admission > 0 {
							a.Deadline, a.Cause = begin.Add(test.admission), errLease
						}
						return a
					},
					run: func(ctx context.Context, _ int) error {
						if got := ctx.Value(key{}); got != "claim" {
							t.Errorf("value = %v, want the one of the admission's context", got)
						}
						<-ctx.Done()
						return context.Cause(ctx)
					},
				}, func(o *batch.Options) { o.Timeout = test.timeout })
				if took := time.Since(begin); took != test.want || report.Results[0].Err != test.cause {
					t.Errorf("ended after %v with %v, want %v with %v", took, report.Results[0].Err, test.want, test.cause)
				}
			})
		})
	}
}
