package lambdatest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// guarded makes its store calls around an effect, as a guard does, and reports what it gets to, deferred calls too.
func guarded(store idempotency.Store, effects *log[string]) lambdatest.HandlerFunc {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		detached := context.WithoutCancel(ctx)
		defer effects.add("deferred")
		if _, err := store.Claim(ctx, idempotency.ClaimRequest{Key: "a"}); err != nil {
			effects.add(err.Error())
			return nil, err
		}
		effects.add("claimed")
		lambdatest.Checkpoint(ctx, "before")
		effects.add("effect")
		lambdatest.Checkpoint(detached, "after")
		err := store.Complete(detached, idempotency.CompleteRequest{Key: "a"})
		effects.add(fmt.Sprintf("completed: %v", err))
		return nil, err
	}
}

func TestCrashPoints(t *testing.T) {
	whole := []string{"claimed", "effect", "completed: <nil>", "deferred"}
	wholeCalls := []string{"Claim a", "Complete a"}
	for _, test := range []struct {
		point lambdatest.Point
		// What the invocation gets to, what reaches the store, and what is let go at Close.
		effects, calls, close []string
	}{
		{point: lambdatest.Point{Moment: lambdatest.BeforeInvoke}},
		{point: lambdatest.Point{Moment: lambdatest.StoreCall, Name: "Claim", Key: "a"},
			close: []string{"lambdatest: function is closed", "deferred"}},
		{point: lambdatest.Point{Moment: lambdatest.StoreReply, Name: "Claim", Key: "a"}, calls: wholeCalls[:1],
			close: []string{"lambdatest: function is closed", "deferred"}},
		{point: lambdatest.Point{Moment: lambdatest.AtCheckpoint, Name: "before"}, effects: whole[:1], calls: wholeCalls[:1],
			close: []string{"deferred"}},
		{point: lambdatest.Point{Moment: lambdatest.AtCheckpoint, Name: "after"}, effects: whole[:2], calls: wholeCalls[:1],
			close: []string{"deferred"}},
		{point: lambdatest.Point{Moment: lambdatest.StoreCall, Name: "Complete", Key: "a"}, effects: whole[:2],
			calls: wholeCalls[:1], close: []string{"completed: lambdatest: function is closed", "deferred"}},
		{point: lambdatest.Point{Moment: lambdatest.StoreReply, Name: "Complete", Key: "a"}, effects: whole[:2],
			calls: wholeCalls, close: []string{"completed: lambdatest: function is closed", "deferred"}},
		{point: lambdatest.Point{Moment: lambdatest.AfterInvoke}, effects: whole, calls: wholeCalls},
	} {
		t.Run(fmt.Sprint(test.point.Moment, " ", test.point.Name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.point.Invocation, test.point.RecordIDs, test.point.Attempt = 1, []string{"r1", "r2"}, 3
				f := newFunction(t, lambdatest.FunctionOptions{
					Crash: func(p lambdatest.Point) bool { return cmp.Equal(p, test.point) },
				})
				var store calls
				var effects log[string]
				h := guarded(f.Store(&store), &effects)
				e := lambdatest.Event{RecordIDs: []string{"r1", "r2"}, Attempt: 3}

				if r := invoke(t, f, e, h); r.Ending != lambdatest.Crashed || r.Response != nil || r.Err != nil {
					t.Errorf("result is %+v, want a crash alone", r)
				}
				synctest.Wait()
				if diff := cmp.Diff(test.effects, effects.all(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("effects (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.calls, store.all(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("store calls (-want +got):\n%s", diff)
				}
				if r := invoke(t, f, e, h); r.Ending != lambdatest.Answered || r.Invocation != 2 {
					t.Errorf("the next result is %+v, want invocation 2 to answer", r)
				}

				effectsBefore, callsBefore := len(effects.all()), len(store.all())
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if diff := cmp.Diff(test.close, effects.all()[effectsBefore:], cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("let go at Close (-want +got):\n%s", diff)
				}
				if got := store.all()[callsBefore:]; len(got) > 0 {
					t.Errorf("reached the store after Close: %q, want nothing", got)
				}
			})
		})
	}
}

// A crash takes every goroutine of its invocation along, at their next store call or checkpoint, and none of
// another's.
func TestCrashKillsOneInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{})
		var store calls
		wrapped := f.Store(&store)
		var effects log[string]
		crashes := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
			go func() { // a sibling record
				defer effects.add("sibling's deferred call")
				time.Sleep(2 * time.Second)
				wrapped.Release(context.WithoutCancel(ctx), idempotency.ReleaseRequest{Key: "sibling"})
			}()
			go func() {
				defer effects.add("other sibling's deferred call")
				time.Sleep(2 * time.Second)
				lambdatest.Checkpoint(ctx, "anything")
			}()
			defer effects.add("own deferred call")
			time.Sleep(time.Second)
			lambdatest.Crash(ctx)
			return nil, nil
		})
		lives := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
			time.Sleep(5 * time.Second)
			return nil, wrapped.Complete(ctx, idempotency.CompleteRequest{Key: "lives"})
		})
		var endings log[string]
		tell := func(r lambdatest.Result) {
			endings.add(fmt.Sprintf("%d %v after %v", r.Invocation, r.Ending, r.Ended.Sub(r.Started)))
		}
		f.Start(t.Context(), crashes, nothing, tell)
		f.Start(t.Context(), lives, nothing, tell)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"1 crashed after 1s", "2 answered after 5s"}, endings.all()); diff != "" {
			t.Errorf("endings (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"Complete lives"}, store.all()); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
		if got := effects.all(); len(got) > 0 {
			t.Errorf("ran before Close: %q, want nothing", got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := effects.all(); len(got) != 3 {
			t.Errorf("ran after Close: %q, want all three deferred calls", got)
		}
		if got := len(store.all()); got != 1 {
			t.Errorf("%d store calls, want no second one after Close", got)
		}
	})
}

// A timed out invocation is dead: what it does later does not arrive, its answer least of all.
func TestTimeoutKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{Timeout: 5 * time.Second})
		timeout := time.After(5 * time.Second) // older than the function's own timer, and so perhaps before it
		var store calls
		wrapped := f.Store(&store)
		var effects log[string]
		r := invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
			defer effects.add("deferred")
			<-timeout
			return nil, wrapped.Complete(context.WithoutCancel(ctx), idempotency.CompleteRequest{Key: "late"})
		})
		if took := r.Ended.Sub(r.Started); r.Ending != lambdatest.TimedOut || took != 5*time.Second {
			t.Errorf("%v after %v, want timed out after 5s", r.Ending, took)
		}
		time.Sleep(time.Minute)
		if got := append(effects.all(), store.all()...); len(got) > 0 {
			t.Errorf("the dead invocation did %q, want nothing", got)
		}
	})
}

// A hook that takes its time does not keep an invocation alive.
func TestTimeoutDuringACrashHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{Timeout: time.Second, Crash: func(p lambdatest.Point) bool {
			if p.Moment == lambdatest.AtCheckpoint {
				time.Sleep(2 * time.Second)
			}
			return false
		}})
		var effects log[string]
		r := invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
			lambdatest.Checkpoint(ctx, "before")
			effects.add("effect")
			return nil, nil
		})
		time.Sleep(time.Minute)
		if got := effects.all(); r.Ending != lambdatest.TimedOut || len(got) > 0 {
			t.Errorf("the invocation %v and did %q, want timed out and nothing", r.Ending, got)
		}
	})
}

// A panic ends the process, so other goroutines of the invocation are dead too. A returned error does not: what is
// still running goes on when the environment thaws.
func TestStragglers(t *testing.T) {
	for _, test := range []struct {
		ending lambdatest.Ending
		want   []string
	}{
		{lambdatest.Panicked, nil},
		{lambdatest.FunctionError, []string{"Release straggler", "passed"}},
		{lambdatest.Answered, []string{"Release straggler", "passed"}},
	} {
		t.Run(test.ending.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFunction(t, lambdatest.FunctionOptions{
					Timeout: 5 * time.Second,
					Crash: func(p lambdatest.Point) bool {
						if p.Key == "straggler" || p.Name == "straggler" {
							t.Errorf("asked at %+v of an invocation that has ended", p)
						}
						return false
					},
				})
				var store calls
				wrapped := f.Store(&store)
				r := invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
					go func() {
						time.Sleep(20 * time.Second) // the deadline of an invocation that has answered means nothing
						wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "straggler"})
						lambdatest.Checkpoint(ctx, "straggler")
						store.add("passed")
					}()
					switch test.ending {
					case lambdatest.Panicked:
						panic("boom")
					case lambdatest.FunctionError:
						return nil, errNo
					}
					return nil, nil
				})
				if r.Ending != test.ending {
					t.Errorf("the invocation %v, want %v", r.Ending, test.ending)
				}
				time.Sleep(time.Minute)
				if diff := cmp.Diff(test.want, store.all()); diff != "" {
					t.Errorf("the straggler did (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestOutsideAnInvocation(t *testing.T) {
	f := newFunction(t, lambdatest.FunctionOptions{Crash: func(lambdatest.Point) bool { return true }})
	lambdatest.Checkpoint(t.Context(), "anything")
	var store calls
	if err := f.Store(&store).Release(t.Context(), idempotency.ReleaseRequest{Key: "k"}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"Release k"}, store.all()); diff != "" {
		t.Errorf("store calls (-want +got):\n%s", diff)
	}
	defer func() {
		if recover() == nil {
			t.Error("Crash outside an invocation did not panic")
		}
	}()
	lambdatest.Crash(t.Context())
}

func TestCrashAfterTheAnswerEndsItsGoroutineOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, lambdatest.FunctionOptions{})
		var effects log[string]
		r := invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
			go func() {
				defer effects.add("deferred")
				time.Sleep(time.Second)
				lambdatest.Crash(ctx)
				effects.add("went on")
			}()
			return nil, nil
		})
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff([]string{"deferred"}, effects.all()); diff != "" {
			t.Errorf("effects (-want +got):\n%s", diff)
		}
		if r.Ending != lambdatest.Answered {
			t.Errorf("the invocation %v, want answered", r.Ending)
		}
	})
}
