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
	"github.com/oncekit/oncekit/sources/kinesis"
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

// Case 34: one line for each record that failed, and one for the batch. No data in any.
func TestLogging(t *testing.T) {
	eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
		var logged logs
		w := &worker{errs: map[string]error{"confidential 2": errors.New("no stock")}}
		records := []record{{Data: "confidential 1", Key: "a"}, {Data: aggregate("confidential 2"), Key: "b", N: 1}}
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options, logged.option), event(records...), sequence(1))
		line := logged.failure(t, eventID(1)+"#0")
		if line.Level != "ERROR" || line.Msg != "record failed" || line.Source != clicksARN || line.Error != "no stock" {
			t.Errorf("line is %+v, want that of the failure", line)
		}
		if lines := logged.about(t, "batch finished"); len(lines) != 1 || lines[0].Failed != 1 || lines[0].Succeeded != 1 {
			t.Errorf("lines are %+v, want a summary of one failure and one success", lines)
		}
		for _, secret := range []string{"confidential", encode("confidential")[:12]} {
			if text := logged.text(); strings.Contains(text, secret) {
				t.Errorf("data are in the log:\n%s", text)
			}
		}
	})
}
