package shardtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/shardtest"
)

func TestDrainOfAnEmptyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		s.drain(succeed)
		if got := s.Stats(); got != (shardtest.Stats{}) {
			t.Errorf("stats are %v, want nothing", got)
		}
	})
}

func TestDrainGivesUpOnPoison(t *testing.T) {
	for name, test := range map[string]struct {
		option func(*shardtest.Options)
		h      lambdatest.Handler
		want   string
	}{
		"partial": {func(*shardtest.Options) {}, poison("b"),
			`kit: record b of shard s was delivered more than 1000 times without progress; 2 records are left in stream "letters"`},
		"error": {func(*shardtest.Options) {}, failWith("b"),
			`kit: record a of shard s was delivered more than 1000 times without progress; 3 records are left in stream "letters"`},
		"bisect": {func(o *shardtest.Options) { o.BisectOnError = true }, failWith("b"),
			`kit: record b of shard s was delivered more than 1000 times without progress; 2 records are left in stream "letters"`},
		"window": {windowed(time.Minute), failing(func(_ int, e event) (string, error) {
			if e.IsFinalInvokeForWindow {
				return "", errNo
			}
			return `{"state":{}}`, nil
		}), `kit: the end of the window of shard s was delivered more than 1000 times without progress; 0 records are left in ` +
			`stream "letters"`},
		// What has no records does not age.
		"window and age": {func(o *shardtest.Options) { o.TumblingWindow, o.MaximumRecordAge = time.Minute, time.Minute },
			failing(func(_ int, e event) (string, error) {
				if e.IsFinalInvokeForWindow {
					return "", errNo
				}
				return `{"state":{}}`, nil
			}), `kit: the end of the window of shard s was delivered more than 1000 times without progress; 0 records are left in ` +
				`stream "letters"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t, test.option)
				s.put("s", "a b c")
				if err := s.Drain(t.Context(), test.h); err == nil || err.Error() != test.want {
					t.Errorf("Drain returned %v, want %s", err, test.want)
				}
			})
		})
	}
}

// Progress makes hope: what fails 600 times, shrinks and fails 600 times more is not poison.
func TestDrainIsPatientAfterProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		s.put("s", "a b")
		s.drain(failing(func(n int, _ event) (string, error) {
			switch {
			case n <= 600:
				return report("a"), nil
			case n <= 1200:
				return report("b"), nil
			}
			return "", nil
		}))
		if got := s.Stats(); got.Invocations != 1201 || got.Done != 2 {
			t.Errorf("stats are %v, want 1201 invocations and 2 records done", got)
		}
	})
}

// A batch of records that age is discarded in the end, however often it was delivered.
func TestDrainWaitsForTheAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.MaximumRecordAge = 6 * time.Hour })
		s.put("s", "a")
		s.drain(poison("a"))
		if got := s.Stats(); got.Invocations < 2000 || got.Discarded != 1 {
			t.Errorf("stats are %v, want a delivery every 10s for 6 hours, and the record discarded", got)
		}
	})
}

// Whoever limits the retries has them all, however many they are.
func TestDrainKeepsToTheLimitOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.MaximumRetryAttempts = 1500 })
		s.put("s", "a")
		s.drain(poison("a"))
		if got := s.Stats(); got.Invocations != 1501 || got.Discarded != 1 {
			t.Errorf("stats are %v, want 1501 invocations and the record discarded", got)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize = 1 })
		s.put("s", "a b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := s.Drain(ctx, handler(func(ctx context.Context, _ event) (string, error) {
			time.Sleep(3 * time.Second)
			return "", ctx.Err() // that of the invocation, which goes on
		}))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `kit: 1 records are left in stream "letters"`) {
			t.Errorf("Drain returned %v, want context.DeadlineExceeded and one record left", err)
		}
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("Drain returned after %v, want 3s: when the invocation under way has ended", got)
		}
		if got := s.Stats(); got.Done != 1 || got.Waiting != 1 {
			t.Errorf("stats are %v, want one record done, one waiting", got)
		}
	})
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx, succeed) }()
		start := time.Now()
		time.Sleep(time.Hour)
		s.put("s", "a")
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"3600 a"}, s.log(start)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
	})
}

// Two polls share the work, and neither delivers what the other has.
func TestTwoDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize = 1 })
		s.put("s", "a b c d")
		slow := handler(func(context.Context, event) (string, error) {
			time.Sleep(time.Second)
			return "", nil
		})
		ended := make(chan error)
		start := time.Now()
		go func() { ended <- s.Drain(t.Context(), slow) }()
		s.drain(slow)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"0 a", "1 b", "2 c", "3 d"}, s.log(start)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestNilHandler(t *testing.T) {
	s := newStream(t)
	for _, err := range []error{s.Drain(t.Context(), nil), s.Run(t.Context(), nil)} {
		if err == nil || err.Error() != "kit: handler is nil" {
			t.Errorf("error is %v, want kit: handler is nil", err)
		}
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		s.put("s", "a")
		ended := make(chan error)
		go func() {
			ended <- s.Drain(t.Context(), handler(func(ctx context.Context, _ event) (string, error) {
				<-ctx.Done()
				return "", nil
			}))
		}()
		synctest.Wait()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		write := s.kit.Write(func(shardtest.Writer[string]) error { t.Error("Write called after Close"); return nil })
		for _, err := range []error{<-ended, s.Drain(t.Context(), succeed), s.Run(t.Context(), succeed), write} {
			if !errors.Is(err, lambdatest.ErrClosed) {
				t.Errorf("error is %v, want ErrClosed", err)
			}
		}
		if got := s.Stats(); got.Done != 0 || len(s.observed()) != 0 {
			t.Errorf("stats are %v with %d deliveries observed, want none done", got, len(s.observed()))
		}
	})
}

// Stores and other calls belong to the function: they take part in its crashes and faults.
func TestStoreAndCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var points []lambdatest.Point
		s := newStream(t, func(o *shardtest.Options) {
			o.Crash = func(p lambdatest.Point) bool {
				points = append(points, p)
				return p.Attempt == 1 && p.Moment == lambdatest.StoreReply
			}
			o.StoreFault = func(p lambdatest.Point) lambdatest.Fault {
				if p.Attempt == 2 {
					return lambdatest.Fault{Err: errNo}
				}
				return lambdatest.Fault{}
			}
		})
		s.put("s", "a b")
		store := s.Store(idempotency.NewMemoryStore())
		called := 0
		s.drain(handler(func(ctx context.Context, _ event) (string, error) {
			if err := s.Call(ctx, "Advance", "k", func() error { called++; return nil }); err != nil {
				return "", err
			}
			return "", store.Release(ctx, idempotency.ReleaseRequest{Key: "k"})
		}))
		if got := s.Stats(); got.Crashes != 1 || got.Errors != 1 || got.Done != 2 || called != 2 {
			t.Errorf("stats are %v with %d calls, want a crash, then an error, then 2 records done, and two calls", got, called)
		}
		want := lambdatest.Point{Moment: lambdatest.AfterInvoke, Invocation: 3, RecordIDs: []string{"a", "b"}, Attempt: 3}
		if diff := cmp.Diff(want, points[len(points)-1]); diff != "" {
			t.Errorf("last point (-want +got):\n%s", diff)
		}
	})
}

func TestInRealTime(t *testing.T) {
	s := newStream(t, func(o *shardtest.Options) {
		o.FunctionTimeout, o.ParallelizationFactor, o.BatchSize = time.Second, 3, 2
	})
	s.put("s", "a b c d e f g h")
	s.drain(succeed)
	if got := s.Stats(); got.Done != 8 || got.Waiting+got.InFlight != 0 {
		t.Errorf("stats are %v, want 8 records done", got)
	}
}
