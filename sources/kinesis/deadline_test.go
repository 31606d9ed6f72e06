package kinesis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
)

// A handler that ignores its context does not take its batch down: the answer goes out in time, and names its record or one
// before it.
func TestDeadlineOfAHungHandler(t *testing.T) {
	eachWay(t, func(t *testing.T, isGuarded bool, options func(*kinesis.Options)) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			w := &worker{work: func(_ context.Context, r *kinesis.Record[string]) error {
				if r.Data == "b1" {
					<-release
				}
				return nil
			}}
			var failed errorHook
			h := newHandler(t, w.handle, options, failed.option)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			begin := time.Now()
			wantCheckpoint(t, ctx, h, event(keyed("a1", "b1", "b2", "c1")...), sequence(1))
			if took := time.Since(begin); took != 19500*time.Millisecond {
				t.Errorf("the answer took %v, want half a reserve less than 20s", took)
			}
			if err := failed.only(t); !errors.Is(err, batch.ErrAbandoned) {
				t.Errorf("error is %v, want %v", err, batch.ErrAbandoned)
			}
			close(release)
		})
	})
}

// What a straggler finishes after the answer is finished: with a guard its record is not run again.
func TestDeadlineOfALateFinisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := &worker{work: func(context.Context, *kinesis.Record[string]) error { <-release; return nil }}
		h := newHandler(t, w.handle, guarded(t, func(o *idempotency.Options) { o.Lease = time.Hour }))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		payload := event(keyed("a1")...)
		wantCheckpoint(t, ctx, h, payload, sequence(0))
		time.Sleep(2 * time.Second)
		close(release)
		synctest.Wait()
		wantCheckpoint(t, t.Context(), h, payload, "")
		w.wantOrder(t, "a1")
	})
}

// Without time nothing starts, and the first is named.
func TestDeadlineIsPast(t *testing.T) {
	eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
		w := &worker{}
		h := newHandler(t, w.handle, options)
		past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
		defer cancel()
		wantCheckpoint(t, past, h, event(keyed("a1", "b1", "a2")...), sequence(0))
		cancelled, cancelNow := context.WithCancel(t.Context())
		cancelNow()
		wantCheckpoint(t, cancelled, h, event(keyed("a1", "b1", "a2")...), sequence(0))
		w.want(t)
		wantCheckpoint(t, t.Context(), h, event(keyed("a1", "b1", "a2")...), "") // and nothing is held
		w.want(t, "a1", "a2", "b1")
	})
}

// Case 32: a failure cancels no sibling that has begun.
func TestDeadlineIsNotMovedByFailures(t *testing.T) {
	for _, isGuarded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &worker{work: func(ctx context.Context, r *kinesis.Record[string]) error {
				if r.Data == "b1" {
					time.Sleep(10 * time.Millisecond)
					return errors.New("no")
				}
				time.Sleep(100 * time.Millisecond)
				return ctx.Err()
			}}
			options := []func(*kinesis.Options){concurrency(3)}
			if isGuarded {
				options = append(options, guarded(t))
			}
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options...), event(keyed("a1", "b1", "c1")...), sequence(1))
			w.want(t, "a1", "b1", "c1")
		})
	}
}

// A position that cannot be stored costs no answer: it goes out before the deadline though the batch ran up to the cut, and
// no record is discarded, however long each try takes.
func TestDeadlineOfASlowWatermark(t *testing.T) {
	for name, advance := range map[string]func(ctx context.Context) error{
		"fails after 3 seconds": func(ctx context.Context) error {
			limited, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			<-limited.Done()
			return limited.Err()
		},
		"hangs":         func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"fails at once": func(context.Context) error { return errStore },
	} {
		t.Run(name, func(t *testing.T) {
			second := func(ctx context.Context, _ *kinesis.Record[string]) error {
				select {
				case <-time.After(time.Second):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			synctest.Test(t, func(t *testing.T) {
				store := slowMarks{advanceSlowly: advance}
				w := &worker{work: second}
				h := newHandler(t, w.handle, store.option)
				ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
				defer cancel()
				wantCheckpoint(t, ctx, h, event(numbered(20)...), sequence(9))
				if ctx.Err() != nil {
					t.Error("the answer came too late")
				}
			})
			synctest.Test(t, func(t *testing.T) {
				store := slowMarks{advanceSlowly: advance}
				w := &worker{work: second}
				h := newHandler(t, w.handle, store.option)
				s, err := kinesistest.NewStream("clicks", func(o *kinesistest.Options) {
					o.FunctionTimeout, o.MaximumRetryAttempts = 10*time.Second, 3
				})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range numbered(20) {
					if _, _, err := s.Put(kinesistest.Record{PartitionKey: "a", Data: []byte(r.Data)}); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Drain(t.Context(), h); err != nil {
					t.Error(err)
				}
				if stats := s.Stats(); stats.Done != 20 || stats.Discarded != 0 || stats.Timeouts != 0 {
					t.Errorf("%v, want all 20 done in time", stats)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// slowMarks is a store whose position is not stored.
type slowMarks struct {
	marks
	advanceSlowly func(context.Context) error
}

func (s *slowMarks) Advance(ctx context.Context, _ watermark.AdvanceRequest) error {
	return s.advanceSlowly(ctx)
}

// option makes the store that of a handler.
func (s *slowMarks) option(o *kinesis.Options) {
	o.Watermark = kinesis.AssumeParallelizationFactorOne(consumer, s)
}

// PanicOnAbandoned comes after the position: what is done is not repeated. The shard stays with the handler that is still
// at work until the lease ends, and so it does with a sink that is, also if its record never got to the handler.
func TestDeadlinePanicOnAbandoned(t *testing.T) {
	for _, hangs := range []string{"handler", "sink", "nothing"} {
		t.Run(hangs, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				w := &worker{work: func(_ context.Context, r *kinesis.Record[string]) error {
					switch {
					case r.Data != "c":
						return nil
					case hangs == "handler":
						<-release
					}
					return errors.New("no")
				}}
				var store marks
				h := newHandler(t, w.handle, store.option, func(o *kinesis.Options) {
					o.PanicOnAbandoned = true
					if hangs == "sink" {
						o.DeadLetter = func(context.Context, *batch.Record, error) error { <-release; return nil }
					}
				})
				records := keyed("a", "b", "c", "d")
				payload := event(records...)
				if hangs == "sink" {
					payload = rawEvent(records[0].json(), records[1].json(), change(records[2], `"data":"`+encode("c")+`"`, `"data":7`))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				begin := time.Now()
				value := func() (value any) {
					defer func() { value = recover() }()
					wantCheckpoint(t, ctx, h, payload, sequence(2))
					return nil
				}()
				if ctx.Err() != nil {
					t.Error("the invocation ended too late")
				}
				if hangs == "nothing" {
					if value != nil {
						t.Errorf("panic is %v, want none", value)
					}
					store.wantPosition(t, sequence(1))
					return
				}
				err, _ := value.(error)
				if failed, ok := errors.AsType[*batch.FailedError](err); !ok || !errors.Is(failed.First, batch.ErrAbandoned) {
					t.Errorf("panic is %v, want a *batch.FailedError of an abandoned record", value)
				}
				now := time.Now()
				_, err = store.MemoryStore.Claim(t.Context(), watermark.ClaimRequest{
					Key: watermark.Key(consumer, clicksARN, shardID), Owner: "another", Now: now, Lease: now.Add(time.Second), Expiry: now.Add(time.Hour),
				})
				if !errors.Is(err, idempotency.ErrInProgress) {
					t.Errorf("another claim after %v: error is %v, want %v", now.Sub(begin), err, idempotency.ErrInProgress)
				}
				time.Sleep(10*time.Second + idempotency.DefaultSkew)
				store.wantPosition(t, sequence(1))
				close(release)
				synctest.Wait()
			})
		})
	}
}

// Case 34: one line for each record that failed, and one for the batch. No data in any.
func TestLogging(t *testing.T) {
	eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
		var logged logs
		w := &worker{errs: map[string]error{"confidential 2": errors.New("no stock")}}
		records := []record{{Data: "confidential 1", Key: "a"}, {Data: aggregate("confidential 2"), Key: "b", N: 1}}
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options, logged.option), event(records...), sequence(1))
		line := logged.Failure(t, eventID(1)+"#0")
		if line.Level != "ERROR" || line.Msg != "record failed" || line.Source != clicksARN || line.Error != "no stock" {
			t.Errorf("line is %+v, want that of the failure", line)
		}
		if lines := logged.About(t, "batch finished"); len(lines) != 1 || lines[0].Failed != 1 || lines[0].Succeeded != 1 {
			t.Errorf("lines are %+v, want a summary of one failure and one success", lines)
		}
		for _, secret := range []string{"confidential", encode("confidential")[:12]} {
			if text := logged.Text(); strings.Contains(text, secret) {
				t.Errorf("data are in the log:\n%s", text)
			}
		}
	})
}
