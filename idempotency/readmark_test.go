package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// markStore is a faultStore that keeps what it was asked to find and mark as well.
type markStore struct {
	faultStore
	onFind, onMark fault // nil: none
	short          bool  // whether it leaves out the last answer

	finds []int
	marks []int
}

func (s *markStore) FindAll(ctx context.Context, requests []idempotency.FindRequest) []idempotency.FindAnswer {
	n := note(ctx, &s.faultStore, fmt.Sprintf("find %d", len(requests)), &s.finds, len(requests))
	answers := make([]idempotency.FindAnswer, len(requests))
	err := pass(ctx, s.onFind, n, func() error {
		answers = s.MemoryStore.FindAll(context.WithoutCancel(ctx), requests)
		return nil
	})
	for i := range answers {
		if err != nil {
			answers[i] = idempotency.FindAnswer{Err: err}
		}
	}
	if s.short {
		return answers[:len(answers)-1]
	}
	return answers
}

func (s *markStore) MarkAll(ctx context.Context, requests []idempotency.MarkRequest) []error {
	n := note(ctx, &s.faultStore, fmt.Sprintf("mark %d", len(requests)), &s.marks, len(requests))
	var errs []error
	err := pass(ctx, s.onMark, n, func() error {
		errs = s.MemoryStore.MarkAll(context.WithoutCancel(ctx), requests)
		return nil
	})
	if err != nil {
		errs = slices.Repeat([]error{err}, len(requests))
	}
	if s.short {
		return errs[:len(errs)-1]
	}
	return errs
}

func readsThenMarks(o *idempotency.Options) { o.ReadThenMark = true }

// Options that are about claims are refused, as is a store that cannot do it.
func TestReadThenMarkOptions(t *testing.T) {
	const why = " with Options.ReadThenMark: it claims nothing"
	for _, test := range []struct {
		name   string
		store  idempotency.Store
		change func(*idempotency.Options)
		want   []string
	}{
		{"alone", idempotency.NewMemoryStore(), func(*idempotency.Options) {}, nil},
		{"with what is not about claims", idempotency.NewMemoryStore(), func(o *idempotency.Options) {
			o.Expiry, o.Skew, o.Wait, o.LocalCache = time.Hour, time.Second, time.Second, 1
			o.FailOpen, o.FailUnrecorded, o.HashKeys = true, true, true
		}, nil},
		{"with claims", idempotency.NewMemoryStore(), func(o *idempotency.Options) {
			o.Lease, o.CountAttempts = time.Minute, true
			o.AskFirst, o.HeldElsewhere = idempotency.AskFirstNever, idempotency.HeldElsewhereDrops
		}, []string{
			"Options.Lease is 1m0s, want 0" + why, "Options.CountAttempts is true, want false" + why,
			"Options.AskFirst is 1, want AskFirstDefault" + why, "Options.HeldElsewhere is 1, want HeldElsewhereFails" + why,
		}},
		{"store without marks", struct{ idempotency.Store }{idempotency.NewMemoryStore()}, func(*idempotency.Options) {},
			[]string{"Options.ReadThenMark is true and store is a struct { idempotency.Store }, want a Marker"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := idempotency.New("orders", test.store, readsThenMarks, test.change)
			var want []string
			for _, line := range test.want {
				want = append(want, "idempotency: "+line)
			}
			if diff := cmp.Diff(strings.Join(want, "\n"), errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// markRun is a call of Do that reads and marks.
type markRun struct {
	calls  []string // of the store
	events string
	result idempotency.Result[int]
	err    error // nil: none
}

// doMark calls Do with work that returns value and workErr, and checks what came of it.
func doMark(t *testing.T, g *idempotency.Guard, store *markStore, told *recorder, value int, workErr error, want markRun) {
	t.Helper()
	store.calls = nil
	told.take()
	result, err := idempotency.Do(t.Context(), g, "k", returns(value, workErr))
	got := markRun{calls: store.calls, events: told.take(), result: result}
	wantErr(t, err, slices.DeleteFunc([]error{want.err}, func(err error) bool { return err == nil })...)
	want.err = nil
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(markRun{})); diff != "" {
		t.Errorf("call with %d, %v (-want +got):\n%s", value, workErr, diff)
	}
}

// One read and one write record the work, one read replays it or begins work that fails, and nothing is ever claimed.
func TestReadThenMark(t *testing.T) {
	store, told := &markStore{}, &recorder{}
	g := newGuard(t, store, readsThenMarks, hooks(told))
	declined := errors.New("card declined")
	doMark(t, g, store, told, 0, declined, markRun{calls: []string{"find 1"}, events: "claimed, released", err: declined})
	if n := store.Len(); n > 0 {
		t.Errorf("the store holds %d keys after a failure, want none", n)
	}
	doMark(t, g, store, told, 7, nil,
		markRun{calls: []string{"find 1", "mark 1"}, events: "claimed, completed", result: idempotency.Result[int]{Value: 7}})
	replay := idempotency.Result[int]{Value: 7, Replayed: true}
	doMark(t, g, store, told, 8, nil, markRun{calls: []string{"find 1"}, events: "replayed", result: replay})

	cached := newGuard(t, store, readsThenMarks, caches(1), hooks(told))
	doMark(t, cached, store, told, 8, nil, markRun{calls: []string{"find 1"}, events: "replayed", result: replay})
	doMark(t, cached, store, told, 8, nil, markRun{events: "replayed", result: replay})

	// A guard that claims sees the mark as a completion.
	doMark(t, newGuard(t, store, hooks(told)), store, told, 8, nil,
		markRun{calls: []string{"claim"}, events: "replayed", result: replay})
}

// What is marked is cached with the result that the store has, and not with one that it has refused.
func TestReadThenMarkCache(t *testing.T) {
	store, told := &markStore{}, &recorder{}
	g := newGuard(t, store, readsThenMarks, caches(2), hooks(told))
	doMark(t, g, store, told, 7, nil,
		markRun{calls: []string{"find 1", "mark 1"}, events: "claimed, completed", result: idempotency.Result[int]{Value: 7}})
	doMark(t, g, store, told, 8, nil, markRun{events: "replayed", result: idempotency.Result[int]{Value: 7, Replayed: true}})

	result, err := idempotency.Do(t.Context(), g, "other", func(ctx context.Context) (int, error) {
		_, err := idempotency.Do(ctx, newGuard(t, store, readsThenMarks), "other", returns(1, nil))
		return 2, err
	})
	wantErr(t, err)
	again, err := idempotency.Do(t.Context(), g, "other", forbidden[int](t))
	wantErr(t, err)
	want := []idempotency.Result[int]{{Value: 2}, {Value: 1, Replayed: true}}
	if diff := cmp.Diff(want, []idempotency.Result[int]{result, again}); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// Two workers that get a key at the same time both do its work, each with its own result. The first to end is recorded.
// Work that crashed leaves nothing behind, and is done by whoever comes next.
func TestReadThenMarkExcludesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &markStore{}
		g := newGuard(t, store, readsThenMarks)
		_, err := g.Claim(t.Context(), idempotency.Request{Key: "k"}) // whose worker is never heard of again
		wantErr(t, err)
		results := make(chan idempotency.Result[int], 2)
		for i := range 2 {
			go func() {
				result, err := idempotency.Do(t.Context(), g, "k", func(context.Context) (int, error) {
					time.Sleep(time.Duration(i+1) * time.Second)
					return i, nil
				})
				wantErr(t, err)
				results <- result
			}()
		}
		got := []idempotency.Result[int]{<-results, <-results}
		if diff := cmp.Diff([]idempotency.Result[int]{{Value: 0}, {Value: 1}}, got); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		replay, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t))
		wantErr(t, err)
		if want := (idempotency.Result[int]{Value: 0, Replayed: true}); replay != want {
			t.Errorf("replay is %+v, want the first to end: %+v", replay, want)
		}
	})
}

// A key that a guard with claims holds is in progress, and is never marked over, until its lease has ended.
func TestReadThenMarkAgainstClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &markStore{}
		claims, marks := newGuard(t, store), newGuard(t, store, readsThenMarks)
		claim, err := claims.Claim(t.Context(), idempotency.Request{Key: "held"})
		wantErr(t, err)
		_, err = idempotency.Do(t.Context(), marks, "held", forbidden[int](t))
		wantErr(t, err, idempotency.ErrInProgress)

		// Claimed while the work is done that is to be marked.
		_, err = idempotency.Do(t.Context(), marks, "late", func(context.Context) (int, error) {
			_, err := claims.Claim(t.Context(), idempotency.Request{Key: "late"})
			return 0, err
		})
		wantErr(t, err, idempotency.ErrClaimLost)
		_, err = idempotency.Do(t.Context(), marks, "slow", func(context.Context) (int, error) {
			_, err := claims.Claim(t.Context(), idempotency.Request{Key: "slow"})
			time.Sleep(idempotency.DefaultLease + idempotency.DefaultSkew) // it ends in a millisecond
			return 0, err
		})
		wantErr(t, err, idempotency.ErrClaimLost)
		if e, _ := store.Get("orders#late"); e.Status != idempotency.InProgress {
			t.Errorf("the claim is %v by now, want it in progress as before", e.Status)
		}

		time.Sleep(idempotency.DefaultLease + idempotency.DefaultSkew + time.Millisecond)
		result, err := idempotency.Do(t.Context(), marks, "held", returns(1, nil))
		wantErr(t, err)
		if result != (idempotency.Result[int]{Value: 1}) {
			t.Errorf("result after the lease is %+v, want that of the work", result)
		}
		wantErr(t, claim.Complete(t.Context(), nil), idempotency.ErrClaimLost)
		wantErr(t, claim.Release(t.Context()), idempotency.ErrClaimLost)
	})
}

// Rule 11: another payload is never replayed, neither where the read finds it nor where the mark does.
func TestReadThenMarkFingerprint(t *testing.T) {
	store := &markStore{}
	g := newGuard(t, store, readsThenMarks)
	with := func(fingerprint string) func(*idempotency.CallOptions) {
		return func(o *idempotency.CallOptions) { o.Fingerprint = fingerprint }
	}
	_, err := idempotency.Do(t.Context(), g, "k", func(ctx context.Context) (int, error) {
		_, err := idempotency.Do(ctx, g, "k", returns(1, nil), with("other"))
		return 2, err
	}, with("mine"))
	wantErr(t, err, idempotency.ErrClaimLost, idempotency.ErrFingerprintMismatch)
	_, err = idempotency.Do(t.Context(), g, "k", forbidden[int](t), with("mine"))
	wantErr(t, err, idempotency.ErrFingerprintMismatch)
	replay, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t), with("other"))
	wantErr(t, err)
	if want := (idempotency.Result[int]{Value: 1, Replayed: true}); replay != want {
		t.Errorf("replay is %+v, want %+v", replay, want)
	}
}

// Rules 3, 8 and 9: a mark whose reply is lost is sent again and is its own; one that stays undecided makes done work
// unrecorded; and work whose read fails does not begin.
func TestReadThenMarkFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		store *markStore
		want  markRun
	}{
		{"lost reply", &markStore{onMark: first(1, loseReply(errThrottled))}, markRun{
			calls: []string{"find 1", "mark 1", "mark 1"}, events: "claimed, completed", result: idempotency.Result[int]{Value: 7}}},
		{"undecided", &markStore{onMark: refuse(errThrottled)}, markRun{
			calls: []string{"find 1", "mark 1", "mark 1", "mark 1"}, events: "claimed, unrecorded",
			result: idempotency.Result[int]{Value: 7, Unrecorded: true}}},
		{"read fails", &markStore{onFind: refuse(errThrottled)}, markRun{
			calls: []string{"find 1"}, events: "claim failed", err: errThrottled}},
		{"unusable", &markStore{onFind: refuse(idempotency.ErrStoreUnusable)}, markRun{
			calls: []string{"find 1"}, events: "claim failed", err: idempotency.ErrStoreUnusable}},
		{"full", &markStore{onFind: refuse(idempotency.ErrStoreFull)}, markRun{
			calls: []string{"find 1"}, events: "claim failed", err: idempotency.ErrStoreFull}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := &recorder{}
				g := newGuard(t, test.store, readsThenMarks, hooks(told))
				doMark(t, g, test.store, told, 7, nil, test.want)
				if test.want.err == nil {
					return
				}
				_, err := idempotency.Do(t.Context(), g, "k", returns(0, nil))
				if want := `idempotency: read of "k": ` + test.want.err.Error(); errorText(err) != want {
					t.Errorf("error is %q, want %q", errorText(err), want)
				}
			})
		})
	}
}

// A store that is full says so before the work, which could not be recorded.
func TestReadThenMarkFull(t *testing.T) {
	store := idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = 1 })
	g := newGuard(t, store, readsThenMarks)
	_, err := idempotency.Do(t.Context(), g, "k", returns(1, nil))
	wantErr(t, err)
	_, err = idempotency.Do(t.Context(), g, "other", forbidden[int](t))
	wantErr(t, err, idempotency.ErrStoreFull)
	replay, err := idempotency.Do(t.Context(), g, "k", forbidden[int](t))
	wantErr(t, err)
	if !replay.Replayed {
		t.Error("the key that is held is not replayed")
	}

	// Full by the time that the work is done: it is unrecorded, and nothing is forgotten for it.
	store = idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = 1 })
	g = newGuard(t, store, readsThenMarks)
	late, err := idempotency.Do(t.Context(), g, "late", func(ctx context.Context) (int, error) {
		_, err := idempotency.Do(ctx, g, "k", returns(1, nil))
		return 2, err
	})
	wantErr(t, err)
	if !late.Unrecorded || store.Len() != 1 {
		t.Errorf("result is %+v and the store holds %d keys, want it unrecorded, and one", late, store.Len())
	}
}

// The context of work ends as far before the invocation as it always does, and not at all where there is no end. Work that
// has no time left does not begin.
func TestReadThenMarkContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, &markStore{}, readsThenMarks)
		for _, test := range []struct {
			limit, want, lease time.Duration // 0: none
		}{
			{0, 0, 0},
			{5 * time.Second, 4500 * time.Millisecond, 5 * time.Second},
			{15 * time.Minute, 15*time.Minute - time.Second, 15 * time.Minute},
		} {
			ctx := t.Context()
			if test.limit > 0 {
				limited, cancel := context.WithTimeout(ctx, test.limit)
				defer cancel()
				ctx = limited
			}
			_, err := idempotency.Do(ctx, g, test.limit.String(), func(ctx context.Context) (int, error) {
				deadline, ok := ctx.Deadline()
				info, guarded := idempotency.FromContext(ctx)
				if !guarded || ok != (test.want > 0) || ok && time.Until(deadline) != test.want || info.LeaseLeft() != test.lease {
					t.Errorf("limit %v: deadline is in %v (%t), lease in %v, guarded is %t, want %v and %v",
						test.limit, time.Until(deadline), ok, info.LeaseLeft(), guarded, test.want, test.lease)
				}
				return 0, nil
			})
			wantErr(t, err)
		}
		late := idempotency.WithInvocationDeadline(t.Context(), time.Now())
		_, err := idempotency.Do(late, g, "late", forbidden[int](t))
		wantErr(t, err, idempotency.ErrLeaseTooShort)
	})
}

// A reply that comes when the time is over begins nothing, and there is nothing to give back.
func TestReadThenMarkSlowReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, told := &markStore{onFind: delayReply(2 * time.Second)}, &recorder{}
		g := newGuard(t, store, readsThenMarks, hooks(told))
		ctx := idempotency.WithInvocationDeadline(t.Context(), time.Now().Add(time.Second))
		_, err := idempotency.Do(ctx, g, "k", forbidden[int](t))
		wantErr(t, err, idempotency.ErrLeaseTooShort)
		if diff := cmp.Diff("too late", told.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"find 1"}, store.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// A result that is kept elsewhere has half of the time that its completion has.
func TestReadThenMarkResultElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := time.Duration(-1)
		kept := &results{onPut: func(ctx context.Context) (string, error) {
			if end, ok := ctx.Deadline(); ok {
				left = time.Until(end)
			}
			return "reference", nil
		}}
		_, err := idempotency.Do(t.Context(), newGuard(t, &markStore{}, readsThenMarks, elsewhere(kept, -1)), "k", returns("a", nil))
		wantErr(t, err)
		if want := 2500 * time.Millisecond; left != want {
			t.Errorf("the result has %v, want %v", left, want)
		}
	})
}

// A transaction is the completion of a claim.
func TestReadThenMarkTransaction(t *testing.T) {
	store := &transactingStore{}
	_, err := idempotency.Do(t.Context(), newGuard(t, store, readsThenMarks), "k", func(ctx context.Context) (int, error) {
		_, err := idempotency.TransactionFrom(ctx)
		return 0, err
	})
	const want = "idempotency: the guard has Options.ReadThenMark, want one that claims: a transaction is the completion of a claim"
	if diff := cmp.Diff(want, errorText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// FailOpen is what it is with claims: work runs whose read fails, and is not recorded.
func TestReadThenMarkFailOpen(t *testing.T) {
	store, told := &markStore{onFind: refuse(errThrottled)}, &recorder{}
	g := newGuard(t, store, readsThenMarks, hooks(told), func(o *idempotency.Options) { o.FailOpen = true })
	doMark(t, g, store, told, 7, nil,
		markRun{calls: []string{"find 1"}, events: "unprotected", result: idempotency.Result[int]{Value: 7}})
}

// Groups are one call of each kind, endings that fail none, and each record is judged by itself.
func TestReadThenMarkGroup(t *testing.T) {
	store, told := &markStore{}, &recorder{}
	g := newGuard(t, store, readsThenMarks, caches(8), hooks(told))
	requests := make([]idempotency.Request, 5)
	for i := range requests {
		requests[i].Key = fmt.Sprint("k", i)
	}
	wantCalls := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, store.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		store.calls = nil
	}
	claims, errs := g.ClaimAll(t.Context(), requests)
	wantErr(t, errors.Join(errs...))
	wantCalls("find 5")
	wantErr(t, errors.Join(g.RenewAll(t.Context(), claims)...)) // there is nothing to renew
	wantCalls()
	for i, c := range claims {
		if !c.StartBy().IsZero() || c.Replayed() {
			t.Errorf("work %d starts by %v, replayed is %t, want no limit and false", i, c.StartBy(), c.Replayed())
		}
	}
	other := newGuard(t, store)
	if _, err := other.Claim(t.Context(), idempotency.Request{Key: "k1"}); err != nil {
		t.Fatal(err)
	}
	told.take()
	store.calls = nil
	errs = g.SettleAll(t.Context(), claims, []idempotency.Ending{
		idempotency.EndComplete, idempotency.EndComplete, idempotency.EndRelease, idempotency.EndGivenUp, idempotency.EndUnstarted,
	})
	wantCalls("mark 3")
	for i, err := range errs {
		if lost := errors.Is(err, idempotency.ErrClaimLost); lost != (i == 1) || err != nil && !lost {
			t.Errorf("ending %d is %v, want the second lost and no other", i, err)
		}
	}
	if diff := cmp.Diff("completed, lost, released, given up, unstarted", told.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	claims, errs = g.ClaimAll(t.Context(), requests)
	wantCalls("find 3") // two are in memory
	var got []string
	for i, c := range claims {
		switch {
		case errs[i] != nil:
			got = append(got, fmt.Sprint(errors.Is(errs[i], idempotency.ErrInProgress)))
		default:
			got = append(got, map[bool]string{true: "replayed", false: "begins"}[c.Replayed()])
		}
	}
	if diff := cmp.Diff([]string{"replayed", "true", "begins", "replayed", "begins"}, got); diff != "" {
		t.Errorf("the second time (-want +got):\n%s", diff)
	}
}

// A store that leaves out an answer has answered nothing.
func TestReadThenMarkShortAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &markStore{}
		g := newGuard(t, store, readsThenMarks)
		requests := []idempotency.Request{{Key: "a"}, {Key: "b"}}
		claims, errs := g.ClaimAll(t.Context(), requests)
		wantErr(t, errors.Join(errs...))
		store.short = true
		const want = "store gave 1 answers to 2 requests"
		for _, err := range g.SettleAll(t.Context(), claims, []idempotency.Ending{idempotency.EndComplete, idempotency.EndComplete}) {
			if !strings.Contains(errorText(err), want) {
				t.Errorf("mark: error is %v, want %q", err, want)
			}
		}
		if _, errs = g.ClaimAll(t.Context(), requests); !strings.Contains(errorText(errs[0]), want) || errs[1] == nil {
			t.Errorf("find: errors are %v, want %q for each", errs, want)
		}
	})
}
