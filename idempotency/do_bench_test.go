package idempotency_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
)

// mapGuard is what people write by hand: a map of results under a lock. It knows no leases, expiries or crashes.
type mapGuard struct {
	mu   sync.Mutex
	done map[string]int
}

func (g *mapGuard) do(ctx context.Context, key string, fn func(context.Context) (int, error)) (int, error) {
	g.mu.Lock()
	value, ok := g.done[key]
	g.mu.Unlock()
	if ok {
		return value, nil
	}
	value, err := fn(ctx)
	if err != nil {
		return 0, err
	}
	g.mu.Lock()
	g.done[key] = value
	g.mu.Unlock()
	return value, nil
}

// BenchmarkDo is Do with a MemoryStore, without a hook and with one that counts, beside a map under a lock: the first run
// of a key, and a replay.
func BenchmarkDo(b *testing.B) {
	work := returns(42, nil)
	const keys = 1 << 14
	names := make([]string, keys)
	for i := range names {
		names[i] = "order-" + strconv.Itoa(i)
	}
	events := 0
	hook := idempotency.HookFunc(func(context.Context, idempotency.Event) { events++ })
	guarded := func(hooks ...idempotency.Hook) func() func(context.Context, string) (int, error) {
		return func() func(context.Context, string) (int, error) {
			g := newGuard(b, idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.Hooks = hooks })
			return func(ctx context.Context, key string) (int, error) {
				result, err := idempotency.Do(ctx, g, key, work)
				return result.Value, err
			}
		}
	}
	newDo := map[string]func() func(context.Context, string) (int, error){
		"guard": guarded(),
		"hook":  guarded(hook),
		"map": func() func(context.Context, string) (int, error) {
			g := &mapGuard{done: make(map[string]int)}
			return func(ctx context.Context, key string) (int, error) { return g.do(ctx, key, work) }
		},
	}
	for _, by := range []string{"map", "guard", "hook"} {
		b.Run("first/by="+by, func(b *testing.B) {
			b.ReportAllocs()
			do := newDo[by]()
			for i := 0; b.Loop(); i++ {
				if i > 0 && i%keys == 0 {
					do = newDo[by]()
				}
				if got, err := do(b.Context(), names[i%keys]); got != 42 || err != nil {
					b.Fatalf("got %d, %v, want 42", got, err)
				}
			}
		})
		b.Run("replay/by="+by, func(b *testing.B) {
			b.ReportAllocs()
			do := newDo[by]()
			if _, err := do(b.Context(), "k"); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if got, err := do(b.Context(), "k"); got != 42 || err != nil {
					b.Fatalf("got %d, %v, want 42", got, err)
				}
			}
		})
	}
}
