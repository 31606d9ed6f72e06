package lambdatest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// A function's store finds and marks if the one within does, and each of both is a call that faults can befall.
func TestStoreMarks(t *testing.T) {
	for name, inner := range map[string]idempotency.Store{
		"single": idempotency.NewMemoryStore(), "many": storetest.Bulk(idempotency.NewMemoryStore()),
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var calls []string
			f := lambdatest.NewFunction(lambdatest.FunctionOptions{StoreFault: func(p lambdatest.Point) lambdatest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if calls = append(calls, p.Name); p.Name == "MarkAll" && !slices.Contains(calls[:len(calls)-1], "MarkAll") {
					return lambdatest.Fault{Err: errors.New("throttled")}
				}
				return lambdatest.Fault{}
			}})
			defer f.Close()
			guard, err := idempotency.New("orders", f.Store(inner), func(o *idempotency.Options) { o.ReadThenMark = true })
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan lambdatest.Result, 1)
			f.Start(t.Context(), lambdatest.HandlerFunc(func(ctx context.Context, _ []byte) ([]byte, error) {
				_, err := idempotency.Do(ctx, guard, "k", func(context.Context) (int, error) { return 1, nil })
				return nil, err
			}), lambdatest.Event{}, func(r lambdatest.Result) { ended <- r })
			if r := <-ended; r.Err != nil {
				t.Fatal(r.Err)
			}
			mu.Lock()
			defer mu.Unlock()
			if want := []string{"FindAll", "MarkAll", "MarkAll"}; !slices.Equal(calls, want) {
				t.Errorf("calls %q, want %q", calls, want)
			}
		})
	}
}

// One that does not is refused by a guard that reads and marks, and not only when it is asked.
func TestStoreMarksNothing(t *testing.T) {
	f := lambdatest.NewFunction(lambdatest.FunctionOptions{})
	defer f.Close()
	plain := struct{ idempotency.Store }{idempotency.NewMemoryStore()}
	for _, inner := range []idempotency.Store{plain, storetest.Bulk(plain)} {
		if _, err := idempotency.New("orders", f.Store(inner), func(o *idempotency.Options) { o.ReadThenMark = true }); err == nil {
			t.Errorf("%T is taken for a store that marks, want an error", inner)
		}
	}
}
