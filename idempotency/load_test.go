package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// A result that is not stored is loaded, for Do and for Wrap. Hooks are told of a replay, and nothing is logged.
func TestLoad(t *testing.T) {
	failure := errors.New("no such row")
	for name, call := range map[string]func(*idempotency.Guard, error) (idempotency.Result[float64], error){
		"Do": func(g *idempotency.Guard, outcome error) (idempotency.Result[float64], error) {
			return idempotency.Do(t.Context(), g, "k", returns(math.NaN(), nil),
				idempotency.LoadWith(func(ctx context.Context) (float64, error) {
					if ctx != t.Context() {
						t.Error("the context is not the caller's")
					}
					return 7, outcome
				}))
		},
		"Wrap": func(g *idempotency.Guard, outcome error) (idempotency.Result[float64], error) {
			replayed := false
			pay := idempotency.Wrap(g, paymentKey, func(context.Context, payment) (float64, error) { return math.NaN(), nil },
				func(o *idempotency.WrapOptions[payment, float64]) {
					o.Load = func(_ context.Context, p payment) (float64, error) { return float64(p.Amount), outcome }
					o.Replayed = func(_ context.Context, n float64) (float64, error) {
						replayed = true
						return n, nil
					}
				})
			value, err := pay(t.Context(), payment{"k", 7})
			if replayed != (value == 7 && err == nil) {
				t.Errorf("Replayed was called: %t, want it to be for what was loaded", replayed)
			}
			return idempotency.Result[float64]{Value: value, Replayed: value == 7}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				log bytes.Buffer
				r   recorder
			)
			store := &faultStore{}
			g := newGuard(t, store, logTo(&log), hooks(&r))
			if got, err := call(g, nil); !math.IsNaN(got.Value) || got.Replayed || err != nil {
				t.Errorf("first result is %+v, error %v, want NaN", got, err)
			}
			for range 2 {
				if got, err := call(g, nil); got.Value != 7 || !got.Replayed || err != nil {
					t.Errorf("replay is %+v, error %v, want what was loaded", got, err)
				}
			}
			if _, err := call(g, failure); err != failure { // itself, not wrapped
				t.Errorf("error is %v, want %v itself", err, failure)
			}
			if diff := cmp.Diff("claimed, result not stored, replayed, replayed, replayed", r.take()); diff != "" || log.Len() > 0 {
				t.Errorf("log is %q; events (-want +got):\n%s", log.String(), diff)
			}
			if diff := cmp.Diff([]string{"claim", "complete", "claim", "claim", "claim"}, store.calls); diff != "" {
				t.Errorf("store calls (-want +got):\n%s", diff)
			}
		})
	}
}

// A result is loaded where what it refers to is gone, or the store had no room for it, and nowhere else.
func TestLoadOnlyWhatIsNotStored(t *testing.T) {
	gone := &results{onGet: func(context.Context) ([]byte, error) { return nil, idempotency.ErrResultNotStored }}
	down := &results{onGet: func(context.Context) ([]byte, error) { return nil, errThrottled }}
	for _, test := range []struct {
		name  string
		data  []byte
		store idempotency.ResultStore
		want  bool
		err   error
	}{
		{"none", nil, nil, true, nil},
		{"gone", []byte(`{"@oncekit":"reference","data":"1"}`), gone, true, nil},
		{"no ResultStore", []byte(`{"@oncekit":"reference","data":"1"}`), nil, true, nil},
		{"not to be had now", []byte(`{"@oncekit":"reference","data":"1"}`), down, false, errThrottled},
		{"another type", []byte(`[]`), nil, false, idempotency.ErrResultInvalid},
		{"stored", []byte(`"stored"`), nil, false, nil},
	} {
		store := &faultStore{}
		g := newGuard(t, store, elsewhere(test.store, 0))
		c, err := g.Claim(t.Context(), idempotency.Request{Key: "k"})
		wantErr(t, err)
		wantErr(t, c.Complete(t.Context(), test.data))
		loaded := false
		_, err = idempotency.Do(t.Context(), g, "k", forbidden[string](t),
			idempotency.LoadWith(func(context.Context) (string, error) {
				loaded = true
				return "loaded", nil
			}))
		if loaded != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: loaded: %t, error %v, want %t, %v", test.name, loaded, err, test.want, test.err)
		}
	}
}

// With R struct{} there is nothing to load.
func TestLoadOfNothing(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore())
	for range 2 {
		_, err := idempotency.Do(t.Context(), g, "k", returns(struct{}{}, nil), idempotency.LoadWith(forbidden[struct{}](t)))
		wantErr(t, err)
	}
}

// What loads a result of another type is an error before anything is done. What is nil loads nothing.
func TestLoadWithAnotherType(t *testing.T) {
	store := &faultStore{}
	g := newGuard(t, store)
	_, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t), idempotency.LoadWith(returns("a", nil)))
	want := "idempotency: LoadWith got a func(context.Context) (string, error), want a func(context.Context) (int, error)"
	if diff := cmp.Diff(want, errorText(err)); diff != "" || len(store.calls) > 0 {
		t.Errorf("store calls are %q; error (-want +got):\n%s", store.calls, diff)
	}
	for range 2 {
		_, err = idempotency.Do(t.Context(), g, "k", returns(math.NaN(), nil), idempotency.LoadWith[string](nil))
	}
	wantNotStored(t, err, "")
}

// The report is too large to be stored with its key, and lies in a bucket in any case: a replay reads it from there.
func ExampleLoadWith() {
	ctx := context.Background()
	guard, err := idempotency.New("reports", idempotency.NewMemoryStore())
	if err != nil {
		fmt.Println(err)
		return
	}
	bucket := map[string]func() string{}
	for range 2 {
		result, err := idempotency.Do(ctx, guard, "2026-11", func(context.Context) (func() string, error) {
			report := func() string { return "all is well" } // has no JSON
			bucket["2026-11"] = report
			return report, nil
		}, idempotency.LoadWith(func(context.Context) (func() string, error) {
			return bucket["2026-11"], nil
		}))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Value(), result.Replayed)
	}
	// Output:
	// all is well false
	// all is well true
}
