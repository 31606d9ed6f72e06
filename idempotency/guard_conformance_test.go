package idempotency_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
)

func TestGuardConformance(t *testing.T) {
	storetest.TestGuard(t, func(t testing.TB, namespace string, store idempotency.Store, o idempotency.Options) storetest.Do {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Hooks = []idempotency.Hook{&ledger{t: t, open: map[string]bool{}}, idempotency.HookFunc(panickingHook)}
		guard, err := idempotency.New(namespace, store, func(p *idempotency.Options) { *p = o })
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, key, fingerprint string, work func(context.Context) ([]byte, error)) ([]byte, bool, error) {
			result, err := idempotency.Do(ctx, guard, key, work, func(o *idempotency.CallOptions) { o.Fingerprint = fingerprint })
			return result.Value, result.Replayed, err
		}
	})
}

// panickingHook shows that a hook that panics changes nothing.
func panickingHook(context.Context, idempotency.Event) { panic("hook") }

// ledger checks that the events of one owner are in order: its claim is made once, and settled no more than once after
// that.
type ledger struct {
	t    testing.TB
	mu   sync.Mutex
	open map[string]bool // by owner: whether its claim is yet to be settled
}

func (l *ledger) OnIdempotency(_ context.Context, e idempotency.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open, known := l.open[e.Owner]
	switch settles := e.Kind >= idempotency.EventCompleted; {
	case e.Owner == "": // the store was not asked
	case !settles && known, settles && !open:
		l.t.Errorf("owner %s is %v; its claim is known: %t, open: %t", e.Owner, e.Kind, known, open)
	default:
		l.open[e.Owner] = e.Kind == idempotency.EventClaimed || e.Kind == idempotency.EventTakenOver
	}
}
