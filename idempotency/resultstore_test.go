package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// results is a ResultStore in memory.
type results struct {
	onPut func(context.Context) (reference string, err error) // nil: keep it
	onGet func(context.Context) ([]byte, error)               // nil: look it up

	mu   sync.Mutex
	puts []idempotency.PutRequest // the reference to each is its index
}

func newResults() *results { return &results{} }

func (s *results) Put(ctx context.Context, r idempotency.PutRequest) (string, error) {
	if s.onPut != nil {
		return s.onPut(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts = append(s.puts, r)
	return fmt.Sprint(len(s.puts) - 1), nil
}

func (s *results) Get(ctx context.Context, reference string) ([]byte, error) {
	if s.onGet != nil {
		return s.onGet(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var i int
	if _, err := fmt.Sscan(reference, &i); err != nil || i >= len(s.puts) {
		return nil, fmt.Errorf("nothing at %s: %w", reference, idempotency.ErrResultNotStored)
	}
	return s.puts[i].Data, nil
}

func elsewhere(s idempotency.ResultStore, over int) func(*idempotency.Options) {
	return func(o *idempotency.Options) { o.Results.Store, o.Results.StoreOver = s, over }
}

// A result over the limit is kept elsewhere, as its JSON, before the work is completed, and replays from there.
func TestResultStore(t *testing.T) {
	const quotes = 2
	const small = idempotency.DefaultStoreOver - quotes
	text := strings.Repeat("a", small+1)
	for _, test := range []struct {
		name      string
		value     string
		over      int
		compress  bool
		elsewhere bool
	}{
		{"default, fits", text[:small], 0, false, false},
		{"default, over", text, 0, false, true},
		{"10 bytes, fits", "12345678", 10, false, false},
		{"10 bytes, over", "123456789", 10, false, true},
		{"all", "", -1, false, true},
		{"fits compressed", text, 1000, true, false},
		{"over compressed", text, 100, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			elsewhereStore := newResults()
			store := &faultStore{onComplete: func(_ context.Context, _ int, send func() error) error {
				if got := len(elsewhereStore.puts) == 1; got != test.elsewhere {
					t.Errorf("the result is kept elsewhere before the completion: %t, want %t", got, test.elsewhere)
				}
				return send()
			}}
			g := newGuard(t, store, elsewhere(elsewhereStore, test.over), func(o *idempotency.Options) { o.Results.Compress = test.compress })
			_, err := idempotency.Do(t.Context(), g, "k", returns(test.value, nil))
			wantErr(t, err)
			if test.elsewhere {
				r := elsewhereStore.puts[0]
				if r.Key != "orders#k" || r.Owner != store.claims[0].Owner || string(r.Data) != `"`+test.value+`"` {
					t.Errorf("put is of %q, owner %s, data %.60s..., want orders#k, %s, the JSON", r.Key, r.Owner, r.Data, store.claims[0].Owner)
				}
				if diff := cmp.Diff(`{"@oncekit":"reference","data":"0"}`, string(store.completes[0].Data)); diff != "" {
					t.Errorf("stored result (-want +got):\n%s", diff)
				}
			}
			got, err := idempotency.Do(t.Context(), g, "k", forbidden[string](t))
			if wantErr(t, err); got.Value != test.value || !got.Replayed {
				t.Errorf("replay is %.60q..., %t, want the value", got.Value, got.Replayed)
			}
		})
	}
}

// Work whose result is none keeps none elsewhere, and neither does work that fails or runs unprotected.
func TestResultStoreUnused(t *testing.T) {
	s := newResults()
	g := newGuard(t, idempotency.NewMemoryStore(), elsewhere(s, -1),
		func(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected })
	_, err := idempotency.Do(t.Context(), g, "void", returns(struct{}{}, nil))
	wantErr(t, err)
	_, err = idempotency.Do(t.Context(), g, "fails", returns("a", errThrottled))
	wantErr(t, err, errThrottled)
	_, err = idempotency.Do(t.Context(), g, "", returns("a", nil))
	wantErr(t, err)
	if len(s.puts) > 0 {
		t.Errorf("kept elsewhere is %+v, want nothing", s.puts)
	}
}

// Work whose result could not be kept elsewhere is done, and recorded as done, without it.
func TestResultStorePutFails(t *testing.T) {
	failure := errors.New("access denied")
	for name, test := range map[string]struct {
		put  func(context.Context) (string, error)
		want string
	}{
		"error":           {func(context.Context) (string, error) { return "", failure }, "access denied"},
		"error beside it": {func(context.Context) (string, error) { return "1", failure }, "access denied"},
		"panic":           {func(context.Context) (string, error) { panicHere("boom"); return "", nil }, "putting it elsewhere panicked: boom"},
		"empty":           {func(context.Context) (string, error) { return "", nil }, "the reference to it is empty, want one"},
		"not UTF-8":       {func(context.Context) (string, error) { return "\xff", nil }, `the reference to it is "\xff", want valid UTF-8`},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				log bytes.Buffer
				r   recorder
			)
			g := newGuard(t, &faultStore{}, elsewhere(&results{onPut: test.put}, -1), logTo(&log), hooks(&r))
			got, err := idempotency.Do(t.Context(), g, "k", returns("receipt", nil))
			if wantErr(t, err); got.Unrecorded || got.Value != "receipt" {
				t.Errorf("result is %+v, want the receipt, recorded", got)
			}
			want := "idempotency: result is not stored: its 9 bytes were to be kept elsewhere: " + test.want
			if err := r.events[1].Err; errorText(err) != `idempotency: completion of "k": `+want {
				t.Errorf("error is %v, want %s", err, want)
			}
			if got := log.String(); !strings.Contains(got, "level=WARN") || strings.Count(got, "\n") != 1 {
				t.Errorf("log is %q, want one warning", got)
			}
			_, err = idempotency.Do(t.Context(), g, "k", forbidden[string](t))
			wantNotStored(t, err, "")
			if diff := cmp.Diff("claimed, result not stored, replayed", r.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func wantNotStored(t *testing.T, err error, reference string) {
	t.Helper()
	wantErr(t, err, idempotency.ErrResultNotStored)
	e, _ := errors.AsType[*idempotency.ResultNotStoredError](err)
	if e == nil || e.Key != "k" || e.Reference != reference {
		t.Errorf("error is %#v, want a ResultNotStoredError of k at %q", err, reference)
	}
}

// A ResultStore that hangs leaves time for the completion, of the lease and of the invocation.
func TestResultStorePutHangs(t *testing.T) {
	for _, test := range []struct {
		name              string
		lease, invocation time.Duration
		took              time.Duration // of the work
		want              time.Duration
	}{
		{"no deadline", time.Minute, 0, 0, 2500 * time.Millisecond},
		{"invocation", 0, 20 * time.Second, 0, 10 * time.Second},
		{"lease", 6 * time.Second, time.Minute, 0, 3 * time.Second},
		{"late", 10 * time.Second, time.Minute, 9 * time.Second, time.Second},
		{"too late", 0, 10 * time.Second, 11 * time.Second, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := limits(t.Context(), 0, test.invocation)
				defer stop()
				store := &faultStore{}
				var waited time.Duration
				s := &results{onPut: func(ctx context.Context) (string, error) {
					start := time.Now()
					<-ctx.Done()
					waited = time.Since(start)
					return "", context.Cause(ctx)
				}}
				g := newGuard(t, store, elsewhere(s, -1), func(o *idempotency.Options) { o.Lease = test.lease })
				got, err := idempotency.Do(ctx, g, "k", func(context.Context) (int, error) {
					time.Sleep(test.took)
					return 1, nil
				})
				if wantErr(t, err); got.Unrecorded || waited != test.want {
					t.Errorf("recorded: %t, waited for %v, want true and %v", !got.Unrecorded, waited, test.want)
				}
				_, err = idempotency.Do(t.Context(), g, "k", forbidden[int](t))
				wantNotStored(t, err, "")
			})
		})
	}
}

// What is kept elsewhere is needed for as long as the completion lives, however late that comes.
func TestResultStoreExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newResults()
		store := &faultStore{onComplete: first(1, func(ctx context.Context, n int, _ func() error) error {
			time.Sleep(4 * time.Second)
			return errThrottled
		})}
		offset := func(o *idempotency.Options) {
			o.Clock = func() time.Time { return time.Now().Add(-30 * time.Minute) }
		}
		_, err := idempotency.Do(t.Context(), newGuard(t, store, elsewhere(s, -1), offset), "k", returns(1, nil))
		wantErr(t, err)
		completion := store.completes[len(store.completes)-1].Expiry
		if put := s.puts[0].Expiry; put.Before(completion) || put.After(completion.Add(10*time.Second)) {
			t.Errorf("result is needed until %v, the completion lives until %v, want no earlier, and not much later", put, completion)
		}
	})
}

// A worker that has lost its claim does not put its result in the place of the one that took over.
func TestResultStoreClaimLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newResults()
		g := newGuard(t, idempotency.NewMemoryStore(), elsewhere(s, -1))
		got, err := idempotency.Do(t.Context(), g, "k", func(context.Context) (string, error) {
			time.Sleep(2 * time.Minute)
			_, err := idempotency.Do(t.Context(), g, "k", returns("second", nil))
			wantErr(t, err)
			return "first", nil
		})
		if wantErr(t, err, idempotency.ErrClaimLost); got.Value != "first" {
			t.Errorf("result is %q, want the first", got.Value)
		}
		if len(s.puts) != 2 || s.puts[0].Owner == s.puts[1].Owner {
			t.Errorf("puts are %+v, want two of two owners", s.puts)
		}
		got, err = idempotency.Do(t.Context(), g, "k", forbidden[string](t))
		if wantErr(t, err); got.Value != "second" {
			t.Errorf("replay is %q, want the second", got.Value)
		}
	})
}

// A result that cannot be had from elsewhere is an error that says where it is, and whether it is gone. Its work is not done
// again.
func TestResultStoreGetFails(t *testing.T) {
	const stored = `{"@oncekit":"reference","data":"s3://results/7"}`
	failure := errors.New("slow down")
	for _, test := range []struct {
		name string
		get  func(context.Context) ([]byte, error)
		gone bool
		want string
	}{
		{"gone", func(context.Context) ([]byte, error) {
			return nil, fmt.Errorf("expired: %w", idempotency.ErrResultNotStored)
		}, true,
			`idempotency: result is not stored: the work of "k" is done, but its result is not to be had at "s3://results/7": ` +
				`expired: idempotency: result is not stored`},
		{"fails", func(context.Context) ([]byte, error) { return nil, failure }, false,
			`idempotency: the work of "k" is done, but its result at "s3://results/7" could not be had: slow down`},
		{"panics", func(context.Context) ([]byte, error) { panicHere("boom"); return nil, nil }, false,
			`idempotency: the work of "k" is done, but its result at "s3://results/7" could not be had: getting it from elsewhere panicked: boom`},
		{"nothing", func(context.Context) ([]byte, error) { return nil, nil }, false,
			`idempotency: stored result is not valid: the work of "k" is done, but its result is no interface {}: unexpected end of JSON input`},
	} {
		got, err := replayOf(t, stored, elsewhere(&results{onGet: test.get}, 0))
		if diff := cmp.Diff(test.want, errorText(err)); diff != "" || !got.Replayed || got.Value != nil {
			t.Errorf("%s: result is %+v; error (-want +got):\n%s", test.name, got, diff)
		}
		if test.gone {
			wantNotStored(t, err, "s3://results/7")
		} else if errors.Is(err, idempotency.ErrResultNotStored) {
			t.Errorf("%s: error is %v, want no %q", test.name, err, idempotency.ErrResultNotStored)
		}
		if test.name == "fails" {
			wantErr(t, err, failure)
		}
	}
	_, err := replayOf(t, stored)
	wantNotStored(t, err, "s3://results/7")
	want := `idempotency: result is not stored: the work of "k" is done, but its result was kept at "s3://results/7", ` +
		`and Options.Results.Store is nil, want the store that it was put in`
	if diff := cmp.Diff(want, errorText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestResultOptions(t *testing.T) {
	for want, options := range map[string]idempotency.ResultOptions{
		"": {Store: newResults(), StoreOver: -1, Compress: true},
		"idempotency: Options.Results.StoreOver is 5, want 0 where Options.Results.Store is nil": {StoreOver: 5},
		"idempotency: Options.Results.Store is a nil *idempotency_test.results, want a ResultStore, or nil for none": {
			Store: (*results)(nil)},
	} {
		_, err := idempotency.New("orders", idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.Results = options })
		if diff := cmp.Diff(want, errorText(err)); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
	}
}
