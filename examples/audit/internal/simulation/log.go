package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// logThrottling is how many appends the log refuses for now.
const logThrottling = 0.06

var errLogThrottled = errors.New("log is throttled")

// row is a row of the log.
type row struct {
	audit.Entry
	owner      string // of the claim it was appended under; "": there is no guard
	invocation int
}

func (r row) effect() evidence.Effect {
	return evidence.Effect{ID: r.EventID, Owner: r.owner, Invocation: r.invocation}
}

// memoryLog is a log that appends whatever it is given. Unlike audit.TableLog it does not refuse a row that is there
// already, so that every repetition is seen.
type memoryLog struct {
	draw draw.Seed

	mu        sync.Mutex
	calls     map[string]int // by event
	throttled int
	rows      []row
}

// Append implements audit.Log.
func (l *memoryLog) Append(ctx context.Context, e audit.Entry) error {
	l.mu.Lock()
	l.calls[e.EventID]++
	call := l.calls[e.EventID]
	refused := l.draw.Chance(logThrottling, "log throttled", e.EventID, call)
	if refused {
		l.throttled++
	}
	l.mu.Unlock()
	if refused {
		return errLogThrottled
	}
	if err := sleep(ctx, l.draw.Duration(time.Millisecond, 3*time.Millisecond, "append", e.EventID, call)); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	// Two points to crash at. The first also keeps what is left of a dead process from appending anything, since Go
	// cannot kill its goroutines.
	lambdatest.Checkpoint(ctx, "append "+e.EventID)
	claim, _ := idempotency.FromContext(ctx)
	l.mu.Lock()
	l.rows = append(l.rows, row{Entry: e, owner: claim.Owner, invocation: invocationOf(ctx)})
	l.mu.Unlock()
	lambdatest.Checkpoint(ctx, "appended "+e.EventID)
	return nil
}

// sleep waits for d, or returns why ctx has ended before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
