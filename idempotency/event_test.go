package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/idempotency"
)

// recorder keeps what it is told.
type recorder struct {
	mu       sync.Mutex
	events   []idempotency.Event
	contexts []context.Context
}

func (r *recorder) OnIdempotency(ctx context.Context, e idempotency.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.contexts = append(r.events, e), append(r.contexts, ctx)
}

// take returns the names of what was told since the last call, separated by commas.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, len(r.events))
	for i, e := range r.events {
		names[i] = e.Kind.String()
	}
	r.events, r.contexts = nil, nil
	return strings.Join(names, ", ")
}

func hooks(hooks ...idempotency.Hook) func(*idempotency.Options) {
	return func(o *idempotency.Options) { o.Hooks = hooks }
}

// call is one that a test makes before the one in question.
type call func(context.Context, *idempotency.Guard)

// Whatever becomes of a call of Do, the hook is told of it, and of nothing else.
func TestEvents(t *testing.T) {
	const prefix = "claimed, "
	works, fails := returns(1.0, nil), returns(0.0, errors.New("card declined"))
	for _, test := range []struct {
		name   string
		store  *faultStore
		key    string
		change func(*idempotency.Options)
		before []call
		work   func(context.Context) (float64, error)
		want   string
		err    error // of the last event
	}{
		{"runs", &faultStore{}, "k", nil, nil, works, prefix + "completed", nil},
		{"completed at the second try", &faultStore{onComplete: first(1, refuse(errThrottled))}, "k", nil, nil, works,
			prefix + "completed", nil},
		{"replays", &faultStore{}, "k", nil, []call{doOf(works)}, works, "replayed", nil},
		{"held elsewhere", &faultStore{}, "k", nil, []call{heldWith("")}, works,
			"in progress", idempotency.ErrInProgress},
		{"mismatch", &faultStore{}, "k", nil, []call{heldWith("another")}, works,
			"mismatch", idempotency.ErrFingerprintMismatch},
		{"takes over", &faultStore{}, "k", nil, []call{heldWith(""), later}, works,
			"taken over, completed", nil},
		{"takes over and fails", &faultStore{}, "k", nil, []call{heldWith(""), later}, fails,
			"taken over, released", nil},
		{"waits, then takes over", &faultStore{}, "k", wait(2 * time.Minute),
			[]call{heldWith(""), almost}, works,
			"in progress, in progress, taken over, completed", nil},
		{"waits in vain", &faultStore{}, "k", wait(300 * time.Millisecond),
			[]call{heldWith("")}, works,
			"in progress, in progress, in progress", idempotency.ErrInProgress},
		{"fails", &faultStore{}, "k", nil, nil, fails, prefix + "released", nil},
		{"fails, and runs after that", &faultStore{}, "k", func(o *idempotency.Options) { o.CountAttempts = true },
			[]call{doOf(fails)}, works, prefix + "completed", nil},
		{"store's own errors are not the guard's", &faultStore{onClaim: refuse(fmt.Errorf("inner: %w", errors.Join(
			idempotency.ErrInProgress, idempotency.ErrFingerprintMismatch, idempotency.ErrLeaseTooShort)))}, "k", nil, nil, works,
			"claim failed", idempotency.ErrInProgress},
		{"claim throttled", &faultStore{onClaim: refuse(errThrottled)}, "k", nil, nil, works, "claim failed", errThrottled},
		{"store full", &faultStore{onClaim: refuse(idempotency.ErrStoreFull)}, "k", nil, nil, works,
			"claim failed", idempotency.ErrStoreFull},
		{"store unusable", &faultStore{onClaim: refuse(idempotency.ErrStoreUnusable)}, "k", nil, nil, works,
			"claim failed", idempotency.ErrStoreUnusable},
		{"claim's reply too late", &faultStore{onClaim: delayReply(time.Hour)}, "k", nil, nil, works,
			"too late", idempotency.ErrLeaseTooShort},
		{"claim hangs", &faultStore{onClaim: hang}, "k", nil, nil, works, "too late", context.DeadlineExceeded},
		{"completion throttled", &faultStore{onComplete: refuse(errThrottled)}, "k", nil, nil, works,
			prefix + "unrecorded", errThrottled},
		{"completion throttled, to fail", &faultStore{onComplete: refuse(errThrottled)}, "k",
			func(o *idempotency.Options) { o.FailUnrecorded = true }, nil, works, prefix + "unrecorded", errThrottled},
		{"claim lost", &faultStore{onComplete: refuse(idempotency.ErrClaimLost)}, "k", nil, nil, works,
			prefix + "lost", idempotency.ErrClaimLost},
		{"result too large", &faultStore{onComplete: refuse(idempotency.ErrResultNotStored)}, "k", nil, nil, works,
			prefix + "result not stored", idempotency.ErrResultNotStored},
		{"result without JSON", &faultStore{}, "k", nil, nil, returns(math.NaN(), nil),
			prefix + "result not stored", idempotency.ErrResultNotStored},
		{"result without JSON, not even recorded", &faultStore{onComplete: refuse(errThrottled)}, "k", nil, nil,
			returns(math.NaN(), nil), prefix + "unrecorded", errThrottled},
		{"release throttled", &faultStore{onRelease: refuse(errThrottled)}, "k", nil, nil, fails,
			prefix + "release failed", errThrottled},
		{"release lost", &faultStore{onRelease: refuse(idempotency.ErrClaimLost)}, "k", nil, nil, fails,
			prefix + "release failed", idempotency.ErrClaimLost},
		{"panics", &faultStore{}, "k", nil, nil, func(context.Context) (float64, error) { panic("boom") },
			prefix + "released", nil},
		{"no key", &faultStore{}, "", nil, nil, works, "key missing", idempotency.ErrKeyMissing},
		{"unprotected", &faultStore{}, "", unprotected, nil, works, "unprotected", nil},
		{"unprotected, and fails", &faultStore{}, "", unprotected, nil, fails, "unprotected", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r recorder
				g := newGuard(t, test.store, func(o *idempotency.Options) {
					if o.Hooks = []idempotency.Hook{&r}; test.change != nil {
						test.change(o)
					}
				})
				for _, call := range test.before {
					call(t.Context(), g)
				}
				r.take()
				run(func() {
					_, _ = idempotency.Do(t.Context(), g, test.key, test.work,
						func(o *idempotency.CallOptions) { o.Fingerprint = "payload" })
				})
				wantErr(t, r.events[len(r.events)-1].Err, test.err)
				if diff := cmp.Diff(test.want, r.take()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func doOf(work func(context.Context) (float64, error)) call {
	return func(ctx context.Context, g *idempotency.Guard) { _, _ = idempotency.Do(ctx, g, "k", work) }
}

// heldWith makes a claim that nobody settles.
func heldWith(fingerprint string) call {
	return func(ctx context.Context, g *idempotency.Guard) {
		_, _ = g.Claim(ctx, idempotency.Request{Key: "k", Fingerprint: fingerprint})
	}
}

func later(context.Context, *idempotency.Guard) { time.Sleep(2 * idempotency.DefaultLease) }

// almost lets time pass until 300 ms before the key can be taken over.
func almost(context.Context, *idempotency.Guard) {
	time.Sleep(idempotency.DefaultLease + idempotency.DefaultSkew - 299*time.Millisecond)
}

func wait(d time.Duration) func(*idempotency.Options) {
	return func(o *idempotency.Options) { o.Wait = d }
}

func unprotected(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected }

// The example's counts, and what the doc comment of Event.Poll says of them: whoever waits is counted once, by what that
// has come to.
func TestCountsOfWaiting(t *testing.T) {
	for _, gaveUp := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			counts, waited := &outcomes{count: map[idempotency.EventKind]int{}}, 0
			g := newGuard(t, &faultStore{}, wait(time.Minute), hooks(counts, idempotency.HookFunc(
				func(_ context.Context, e idempotency.Event) {
					if e.Kind != idempotency.EventInProgress && e.Kind <= idempotency.EventKeyMissing && e.Poll > 0 {
						waited++
					}
				})))
			held, err := g.Claim(t.Context(), idempotency.Request{Key: "k"})
			wantErr(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			want := map[idempotency.EventKind]int{idempotency.EventClaimed: 1, idempotency.EventInProgress: 1}
			if gaveUp == 0 {
				time.AfterFunc(time.Second, func() { wantErr(t, held.Release(t.Context())) })
				want[idempotency.EventClaimed] = 2
				want[idempotency.EventReleased], want[idempotency.EventCompleted] = 1, 1
			}
			_, _ = idempotency.Do(ctx, g, "k", returns(1, nil))
			if diff := cmp.Diff(want, counts.count); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if got := counts.count[idempotency.EventInProgress] - waited; got != gaveUp {
				t.Errorf("%d gave up waiting, want %d", got, gaveUp)
			}
		})
	}
}

// What is in an event: enough to join the events of one claim, and no key that must not be shown.
func TestEventFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		store := &faultStore{}
		g := newGuard(t, store, hooks(&r), wait(250*time.Millisecond), func(o *idempotency.Options) {
			o.HashKeys, o.CountAttempts = true, true
		})
		failure := errors.New("card declined")
		_, err := idempotency.Do(t.Context(), g, "jane@example.com", returns(0, failure))
		wantErr(t, err, failure)
		_, err = idempotency.Do(t.Context(), g, "jane@example.com", func(ctx context.Context) (int, error) {
			_, err := idempotency.Do(ctx, g, "jane@example.com", forbidden[int](t))
			wantErr(t, err, idempotency.ErrInProgress)
			return 1, nil
		})
		wantErr(t, err)
		_, err = idempotency.Do(t.Context(), g, "", forbidden[int](t))
		wantErr(t, err, idempotency.ErrKeyMissing)

		key := strings.TrimPrefix(hashed("jane@example.com"), "orders#")
		event := func(kind idempotency.EventKind, claim, attempt, poll int) idempotency.Event {
			return idempotency.Event{Kind: kind, Namespace: "orders", Key: key, Owner: store.claims[claim].Owner,
				Attempt: attempt, Poll: poll}
		}
		want := []idempotency.Event{
			event(idempotency.EventClaimed, 0, 1, 0), event(idempotency.EventReleased, 0, 1, 0),
			event(idempotency.EventClaimed, 1, 2, 0),
			event(idempotency.EventInProgress, 2, 0, 0), event(idempotency.EventInProgress, 3, 0, 1),
			event(idempotency.EventInProgress, 4, 0, 2),
			event(idempotency.EventCompleted, 1, 2, 0),
			{Kind: idempotency.EventKeyMissing, Namespace: "orders"},
		}
		withoutError := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Err" }, cmp.Ignore())
		if diff := cmp.Diff(want, r.events, withoutError); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if held, ok := errors.AsType[*idempotency.InProgressError](r.events[3].Err); !ok || held.Key != key {
			t.Errorf("error of the third claim is %v, want an *InProgressError of key %s", r.events[3].Err, key)
		}
	})
}

// A claim that is given back by hand, and one of a source that polls by itself.
func TestEventsOfClaims(t *testing.T) {
	var r recorder
	g := newGuard(t, idempotency.NewMemoryStore(), hooks(&r))
	c, err := g.Claim(t.Context(), idempotency.Request{Key: "k", Poll: 3, Attempt: 2})
	wantErr(t, err)
	if e := r.events[0]; e.Poll != 3 || e.Attempt != 2 {
		t.Errorf("event is %+v, want poll 3 and attempt 2", e)
	}
	wantErr(t, c.ReleaseUnstarted(t.Context()))
	c, err = g.Claim(t.Context(), idempotency.Request{Key: "k"})
	wantErr(t, err)
	wantErr(t, c.Complete(t.Context(), nil))
	wantErr(t, c.Release(t.Context()), idempotency.ErrAlreadyCompleted)
	if diff := cmp.Diff("claimed, unstarted, claimed, completed, release failed", r.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(idempotency.ErrInProgress) // the cause is no answer of the store's
	_, err = g.Claim(cancelled, idempotency.Request{Key: "k"})
	wantErr(t, err, idempotency.ErrLeaseTooShort)
	if e := r.events[0]; e.Kind != idempotency.EventTooLate || e.Key != "k" || e.Owner != "" {
		t.Errorf("event is %+v, want one that is too late, and no owner since the store was not asked", e)
	}
}

// The hook's context has the values of the caller's, and that of a completion outlives the work's.
func TestEventContext(t *testing.T) {
	var r recorder
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "trace"))
	var ended []error
	ending := idempotency.HookFunc(func(ctx context.Context, _ idempotency.Event) { ended = append(ended, ctx.Err()) })
	g := newGuard(t, idempotency.NewMemoryStore(), hooks(&r, ending))
	_, err := idempotency.Do(ctx, g, "k", func(context.Context) (int, error) { cancel(); return 1, nil })
	wantErr(t, err)
	if diff := cmp.Diff([]error{nil, nil}, ended); diff != "" {
		t.Errorf("errors of the contexts (-want +got):\n%s", diff)
	}
	for i, ctx := range r.contexts {
		if got := ctx.Value(valueKey{}); got != "trace" {
			t.Errorf("value in the context of event %d is %v, want trace", i, got)
		}
	}
}

// A hook that panics loses its call, and that is all: the next hook is called, and the work is done, recorded and replayed.
func TestPanickingHook(t *testing.T) {
	var (
		log bytes.Buffer
		r   recorder
	)
	panicking := idempotency.HookFunc(func(context.Context, idempotency.Event) { panic("no metrics") })
	g := newGuard(t, idempotency.NewMemoryStore(), hooks(panicking, &r), logTo(&log), unprotected)
	for _, replayed := range []bool{false, true} {
		got, err := idempotency.Do(t.Context(), g, "k", returns(1, nil))
		if want := (idempotency.Result[int]{Value: 1, Replayed: replayed}); got != want || err != nil {
			t.Errorf("result is %+v, error is %v, want %+v", got, err, want)
		}
	}
	_, err := idempotency.Do(t.Context(), g, "", returns(1, nil))
	wantErr(t, err)
	if diff := cmp.Diff("claimed, completed, replayed, unprotected", r.take()); diff != "" {
		t.Errorf("events of the second hook (-want +got):\n%s", diff)
	}
	line := `level=ERROR msg="idempotency hook panicked" key=k panic="no metrics"` + "\n"
	want := strings.Repeat(line, 3) + strings.Replace(line, "key=k", `key=""`, 1)
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// A store that panics is no reason to be silent.
func TestEventsOfPanickingStore(t *testing.T) {
	panics := func(context.Context, int, func() error) error { panic("store") }
	failure := errors.New("card declined")
	for _, test := range []struct {
		store *faultStore
		work  error
		want  string
	}{
		{&faultStore{onClaim: panics}, nil, "claim failed"},
		{&faultStore{onClaim: panics, onRelease: panics}, nil, "claim failed"},
		{&faultStore{onClaim: refuse(errThrottled), onRelease: panics}, nil, "claim failed"},
		{&faultStore{onComplete: panics}, nil, "claimed, unrecorded"},
		{&faultStore{onRelease: panics}, failure, "claimed, release failed"},
	} {
		var r recorder
		e := run(func() {
			_, _ = idempotency.Do(t.Context(), newGuard(t, test.store, hooks(&r)), "k", returns(1, test.work))
		})
		if e.recovered != "store" {
			t.Errorf("%s: recovered %v, want the store's panic", test.want, e.recovered)
		}
		if last := r.events[len(r.events)-1]; errorText(last.Err) != "idempotency: store panicked" {
			t.Errorf("%s: error is %v, want that the store panicked", test.want, last.Err)
		}
		if diff := cmp.Diff(test.want, r.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
}

// Every kind has a name of its own.
func TestEventKindString(t *testing.T) {
	seen := map[string]idempotency.EventKind{}
	for kind := idempotency.EventClaimed; kind <= idempotency.EventReleaseFailed; kind++ {
		name := kind.String()
		if other, ok := seen[name]; ok || name == "unknown" || name == "" {
			t.Errorf("kind %d is %q, as is kind %d", kind, name, other)
		}
		seen[name] = kind
	}
	for _, kind := range []idempotency.EventKind{0, idempotency.EventReleaseFailed + 1, 255} {
		if got := kind.String(); got != "unknown" {
			t.Errorf("kind %d is %q, want unknown", kind, got)
		}
	}
}

// Options are checked when the guard is made, and what becomes of the slice after that is of no concern.
func TestHooksOption(t *testing.T) {
	_, err := idempotency.New("orders", idempotency.NewMemoryStore(), hooks(&recorder{}, nil))
	want := "idempotency: Options.Hooks[1] is <nil>, want a Hook"
	if diff := cmp.Diff(want, errorText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	_, err = idempotency.New("orders", idempotency.NewMemoryStore(), hooks((*recorder)(nil), idempotency.HookFunc(nil)))
	want = "idempotency: Options.Hooks[0] is a nil *idempotency_test.recorder, want a Hook\n" +
		"idempotency: Options.Hooks[1] is a nil idempotency.HookFunc, want a Hook"
	if diff := cmp.Diff(want, errorText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	var r recorder
	list := []idempotency.Hook{&r}
	g := newGuard(t, idempotency.NewMemoryStore(), hooks(list...))
	list[0] = nil
	g.Options().Hooks[0] = nil
	_, err = idempotency.Do(t.Context(), g, "k", returns(1, nil))
	wantErr(t, err)
	if diff := cmp.Diff("claimed, completed", r.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Work that was given up is told as that, whatever becomes of its key.
func TestEventsOfGivingUp(t *testing.T) {
	for _, test := range []struct {
		done  bool
		store *faultStore
		want  string
		entry idempotency.Status
		err   error
	}{
		{true, &faultStore{}, "claimed, given up", idempotency.Completed, nil},
		{false, &faultStore{}, "claimed, given up", idempotency.Absent, nil},
		{true, &faultStore{onComplete: refuse(errThrottled)}, "claimed, release failed", idempotency.InProgress, errThrottled},
		{false, &faultStore{onRelease: refuse(errThrottled)}, "claimed, release failed", idempotency.InProgress, errThrottled},
	} {
		var r recorder
		c, err := newGuard(t, test.store, hooks(&r)).Claim(t.Context(), idempotency.Request{Key: "k"})
		wantErr(t, err)
		if err := c.GiveUp(t.Context(), test.done); !errors.Is(err, test.err) {
			t.Errorf("done %t: error is %v, want %v", test.done, err, test.err)
		}
		if entry, _ := test.store.Get("orders#k"); entry.Status != test.entry {
			t.Errorf("done %t: entry is %v, want %v", test.done, entry.Status, test.entry)
		}
		if diff := cmp.Diff(test.want, r.take()); diff != "" {
			t.Errorf("done %t: events (-want +got):\n%s", test.done, diff)
		}
	}
}

// A mismatch that somebody else has seen is told with the key as it is stored.
func TestTellMismatch(t *testing.T) {
	var r recorder
	g := newGuard(t, idempotency.NewMemoryStore(), hooks(&r), func(o *idempotency.Options) { o.HashKeys = true })
	g.TellMismatch(t.Context(), idempotency.Request{Key: "k", Attempt: 2}, idempotency.ErrFingerprintMismatch)
	want := []idempotency.Event{{
		Kind: idempotency.EventMismatch, Namespace: "orders", Key: strings.TrimPrefix(hashed("k"), "orders#"), Attempt: 2,
		Err: idempotency.ErrFingerprintMismatch,
	}}
	if diff := cmp.Diff(want, r.events, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Work whose hooks take longer than its lease does not begin, so that it does not run beside the next owner's.
func TestSlowHook(t *testing.T) {
	for _, ends := range []bool{false, true} { // the lease, or the caller's context
		synctest.Test(t, func(t *testing.T) {
			var r recorder
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			slow := idempotency.HookFunc(func(_ context.Context, e idempotency.Event) {
				switch {
				case e.Kind != idempotency.EventClaimed:
				case ends:
					cancel()
				default:
					time.Sleep(idempotency.DefaultLease)
				}
			})
			store := &faultStore{}
			g := newGuard(t, store, hooks(slow, &r))
			_, err := idempotency.Do(ctx, g, "k", forbidden[int](t))
			wantErr(t, err, idempotency.ErrLeaseTooShort)
			if claim, err := g.Claim(ctx, idempotency.Request{Key: "l"}); claim != nil || err == nil {
				t.Errorf("claim is %v, error %v, want an error alone", claim, err)
			}
			for _, key := range []string{"orders#k", "orders#l"} {
				if entry, held := store.Get(key); held {
					t.Errorf("entry of %s is %+v, want none", key, entry)
				}
			}
			want := "claimed, unstarted, claimed, unstarted"
			if ends {
				want = "claimed, unstarted, too late"
			}
			if diff := cmp.Diff(want, r.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A hook may use its guard: it is not told of that, however it comes by it, but hooks of other guards are.
func TestHookUsesItsGuard(t *testing.T) {
	var (
		own, other   recorder
		guard, inner *idempotency.Guard
	)
	calls := 0
	once := func(ctx context.Context, g *idempotency.Guard, key string) {
		if calls++; calls > 100 {
			return // the events will say it
		}
		if _, err := idempotency.Do(ctx, g, key, returns(1, nil)); err != nil {
			t.Errorf("inside the hook: %v", err)
		}
	}
	inner = newGuard(t, idempotency.NewMemoryStore(), hooks(&other, idempotency.HookFunc(
		func(ctx context.Context, e idempotency.Event) { once(ctx, guard, "by inner: "+e.Kind.String()) })))
	guard = newGuard(t, idempotency.NewMemoryStore(), hooks(&own, idempotency.HookFunc(
		func(ctx context.Context, e idempotency.Event) {
			once(ctx, guard, "by itself: "+e.Kind.String())
			once(ctx, inner, e.Kind.String())
		})))
	once(t.Context(), guard, "k")
	if diff := cmp.Diff("claimed, completed", own.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("claimed, completed, claimed, completed", other.take()); diff != "" {
		t.Errorf("events of the other guard (-want +got):\n%s", diff)
	}
}

// A hook costs one allocation an event, for its context, and nothing where there is none.
func TestHookAllocations(t *testing.T) {
	events := 0
	count := idempotency.HookFunc(func(context.Context, idempotency.Event) { events++ })
	allocations := func(hooks ...idempotency.Hook) float64 {
		g := newGuard(t, idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.Hooks = hooks })
		replay := func() {
			if _, err := idempotency.Do(t.Context(), g, "k", returns(1, nil)); err != nil {
				t.Fatal(err)
			}
		}
		replay()
		return testing.AllocsPerRun(200, replay)
	}
	if without, with := allocations(), allocations(count); with != without+1 {
		t.Errorf("%v allocations with a hook, %v without, want one more", with, without)
	}
	if events < 200 {
		t.Errorf("%d events, want one for each call", events)
	}
}
