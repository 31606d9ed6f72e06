package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// bulkCheck is one thing that a BulkStore must do besides what every store must.
type bulkCheck struct {
	name string
	run  func(t testing.TB, s *suite, b idempotency.BulkStore)
}

var bulkChecks = []bulkCheck{
	{"sizes", bulkSizes},
	{"nothing", bulkNothing},
	{"claims in order", bulkClaimsInOrder},
	{"transitions in order", bulkTransitionsInOrder},
	{"1,000 keys", bulkThousand},
	{"one key twice", bulkKeyTwice},
	{"requests are kept", bulkRequestsKept},
	{"context done", bulkContextDone},
	{"two callers of 200 keys", bulkTwoCallers},
}

func bulkSizes(t testing.TB, _ *suite, b idempotency.BulkStore) {
	first := b.BulkSizes()
	for range 3 {
		if again := b.BulkSizes(); again != first {
			t.Errorf("sizes are %+v and then %+v, want them to stay", first, again)
		}
	}
}

func bulkNothing(t testing.TB, s *suite, b idempotency.BulkStore) {
	for name, n := range map[string]int{
		"ClaimAll":    len(b.ClaimAll(s.ctx, nil)),
		"CompleteAll": len(b.CompleteAll(s.ctx, nil)),
		"ReleaseAll":  len(b.ReleaseAll(s.ctx, nil)),
		"RenewAll":    len(b.RenewAll(s.ctx, nil)),
	} {
		if n != 0 {
			t.Errorf("%s without requests has %d answers, want none", name, n)
		}
	}
}

// claimsAt returns claims of n new keys.
func (s *suite) claimsAt(n int) []idempotency.ClaimRequest {
	requests := make([]idempotency.ClaimRequest, n)
	for i := range requests {
		requests[i] = s.claimAt(newKey(), s.start)
	}
	return requests
}

// mustClaimAll claims keys that are free.
func (s *suite) mustClaimAll(t testing.TB, b idempotency.BulkStore, requests []idempotency.ClaimRequest) {
	t.Helper()
	answers := b.ClaimAll(s.ctx, requests)
	if len(answers) != len(requests) {
		t.Fatalf("%d claims have %d answers", len(requests), len(answers))
	}
	for i, r := range requests {
		if answers[i].Err != nil || !answers[i].Claimed || answers[i].TookOver {
			t.Fatalf("claim %d of %d absent keys = %+v, want it granted", i, len(requests), answers[i])
		}
		want := inProgress(r)
		want.Attempts = answers[i].Entry.Attempts
		s.wantEntry(t, fmt.Sprintf("entry of claim %d of %d", i, len(requests)), answers[i].Entry, want)
	}
}

// wantErrors checks the answers of a call that was told which to expect.
func wantErrors(t testing.TB, what string, got, want []error) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d requests have %d answers", what, len(want), len(got))
	}
	for i := range want {
		if want[i] == nil && got[i] != nil || !errors.Is(got[i], want[i]) {
			t.Errorf("%s: error %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// bulkClaimsInOrder claims keys that are held, completed, free after a lease, and absent, in one call.
func bulkClaimsInOrder(t testing.TB, s *suite, b idempotency.BulkStore) {
	before := s.claimsAt(45)
	for i := range before {
		before[i].Fingerprint = fmt.Sprint("f", i)
	}
	s.mustClaimAll(t, b, before)
	want := make([]idempotency.ClaimAnswer, 60)
	requests := make([]idempotency.ClaimRequest, 60)
	for i := range requests {
		requests[i] = s.claimAt(newKey(), s.start)
		want[i].ClaimResult = idempotency.ClaimResult{Claimed: true, Entry: inProgress(requests[i])}
		if i >= len(before) {
			continue
		}
		requests[i].Key = before[i].Key
		switch i % 3 {
		case 0:
			want[i].ClaimResult = idempotency.ClaimResult{Entry: inProgress(before[i])}
		case 1:
			c := completion(before[i], fmt.Sprint(i))
			s.mustComplete(t, c)
			want[i].ClaimResult = idempotency.ClaimResult{Entry: completed(before[i], c)}
		default:
			requests[i].Now = before[i].Lease.Add(skew + 1e6)
			requests[i].Lease, requests[i].Expiry = requests[i].Now.Add(leaseTime), requests[i].Now.Add(expiryTime)
			want[i].ClaimResult = idempotency.ClaimResult{Claimed: true, TookOver: true, Entry: inProgress(requests[i])}
		}
		requests[i].AskFirst = i%4 == 0
	}
	chance := rand.New(rand.NewPCG(1, 1))
	chance.Shuffle(len(requests), func(i, j int) {
		requests[i], requests[j] = requests[j], requests[i]
		want[i], want[j] = want[j], want[i]
	})
	got := b.ClaimAll(s.ctx, requests)
	if len(got) != len(want) {
		t.Fatalf("%d claims have %d answers", len(want), len(got))
	}
	for i := range got {
		if got[i].Err != nil {
			t.Fatalf("claim %d: %v", i, got[i].Err)
		}
		if got[i].Entry.Status == idempotency.Completed {
			got[i].Entry.Lease = want[i].Entry.Lease
		}
		if diff := cmp.Diff(want[i].ClaimResult, got[i].ClaimResult); diff != "" {
			t.Fatalf("claim %d (-want +got):\n%s", i, diff)
		}
	}
}

// bulkTransitionsInOrder has requests that are refused among those that are not, in each method.
func bulkTransitionsInOrder(t testing.TB, s *suite, b idempotency.BulkStore) {
	r := s.claimsAt(60)
	s.mustClaimAll(t, b, r)

	renewals, want := make([]idempotency.RenewRequest, len(r)), make([]error, len(r))
	for i := range r {
		renewals[i] = renewal(r[i])
		if i%3 == 0 {
			renewals[i].Owner, want[i] = newOwner(), idempotency.ErrClaimLost
		} else {
			r[i].Owner, r[i].Lease, r[i].Expiry = renewals[i].NewOwner, renewals[i].Lease, renewals[i].Expiry
		}
	}
	wantErrors(t, "renewals", b.RenewAll(s.ctx, renewals), want)

	completions := make([]idempotency.CompleteRequest, 30)
	want = make([]error, len(completions))
	for i := range completions {
		completions[i] = completion(r[i], fmt.Sprint(i))
		if i%4 == 0 {
			completions[i].Owner, want[i] = newOwner(), idempotency.ErrClaimLost
		}
	}
	wantErrors(t, "completions", b.CompleteAll(s.ctx, completions), want)

	releases := make([]idempotency.ReleaseRequest, len(r))
	want = make([]error, len(r))
	for i := range r {
		releases[i] = release(r[i])
		switch {
		case i%5 == 0:
			releases[i].Owner, want[i] = newOwner(), idempotency.ErrClaimLost
		case i < 30 && i%4 != 0:
			want[i] = idempotency.ErrAlreadyCompleted
		case i%7 == 0:
			releases[i].Key = newKey() // absent is released
		}
	}
	wantErrors(t, "releases", b.ReleaseAll(s.ctx, releases), want)

	for i := range r {
		switch {
		case i < 30 && i%4 != 0:
			s.wantHeld(t, fmt.Sprint("completed entry ", i), s.start, r[i].Key, completed(r[i], completions[i]))
		case i%5 == 0 || releases[i].Key != r[i].Key:
			s.wantHeld(t, fmt.Sprint("entry ", i, " in progress"), s.start, r[i].Key, inProgress(r[i]))
		default:
			s.wantFree(t, fmt.Sprint("released entry ", i), s.start, r[i].Key)
		}
	}
}

// bulkThousand has more requests than the sizes say.
func bulkThousand(t testing.TB, s *suite, b idempotency.BulkStore) {
	r := s.claimsAt(1000)
	s.mustClaimAll(t, b, r)
	completions := make([]idempotency.CompleteRequest, len(r))
	for i := range r {
		completions[i] = completion(r[i], fmt.Sprint(i))
	}
	wantErrors(t, "completions", b.CompleteAll(s.ctx, completions), make([]error, len(r)))
	for i := range r {
		r[i].Owner, r[i].AskFirst = newOwner(), true
	}
	for i, answer := range b.ClaimAll(s.ctx, r) {
		want := completed(r[i], completions[i])
		if answer.Err != nil || answer.Claimed {
			t.Fatalf("claim %d of what is completed = %+v, want it refused", i, answer)
		}
		s.wantEntry(t, fmt.Sprintf("entry of claim %d", i), answer.Entry, want)
	}
}

// bulkKeyTwice has requests of two owners for one key in one call.
func bulkKeyTwice(t testing.TB, s *suite, b idempotency.BulkStore) {
	r := s.claimsAt(30)
	both := append(slices.Clone(r), r...)
	for i := range r {
		both[len(r)+i].Owner = newOwner()
		both[len(r)+i].AskFirst = i%2 == 0
	}
	completions, want := make([]idempotency.CompleteRequest, len(both)), make([]error, len(both))
	answers := b.ClaimAll(s.ctx, both)
	for i := range r {
		winner, loser := i, len(r)+i
		if answers[loser].Claimed {
			winner, loser = loser, winner
		}
		switch first, second := answers[winner], answers[loser]; {
		case first.Err != nil || second.Err != nil:
			t.Fatalf("claims of one key: errors are %v and %v", first.Err, second.Err)
		case !first.Claimed || second.Claimed:
			t.Fatalf("claims of one key: granted is %t and %t, want one", first.Claimed, second.Claimed)
		case second.Entry.Owner != both[winner].Owner:
			t.Fatalf("claims of one key: %s was refused by %q, want %q", both[loser].Owner, second.Entry.Owner, both[winner].Owner)
		}
		completions[winner] = completion(both[winner], "1")
		completions[loser] = completion(both[loser], "2")
		want[loser] = idempotency.ErrClaimLost
	}
	wantErrors(t, "completions of one key", b.CompleteAll(s.ctx, completions), want)
}

func bulkRequestsKept(t testing.TB, s *suite, b idempotency.BulkStore) {
	claims := s.claimsAt(6)
	claims = append(claims, claims...)
	for i := range claims {
		claims[i].AskFirst = i%2 == 0
	}
	renewals := make([]idempotency.RenewRequest, len(claims))
	completions := make([]idempotency.CompleteRequest, len(claims))
	releases := make([]idempotency.ReleaseRequest, len(claims))
	for i, r := range claims {
		renewals[i], completions[i], releases[i] = renewal(r), completion(r, "1"), release(r)
	}
	kept(t, "ClaimAll", claims, func() { b.ClaimAll(s.ctx, claims) })
	kept(t, "RenewAll", renewals, func() { b.RenewAll(s.ctx, renewals) })
	kept(t, "CompleteAll", completions, func() { b.CompleteAll(s.ctx, completions) })
	kept(t, "ReleaseAll", releases, func() { b.ReleaseAll(s.ctx, releases) })
}

func kept[R any](t testing.TB, method string, requests []R, do func()) {
	t.Helper()
	before := slices.Clone(requests)
	do()
	if diff := cmp.Diff(before, requests); diff != "" {
		t.Errorf("%s changed the requests that it was given (-want +got):\n%s", method, diff)
	}
}

// bulkContextDone makes calls whose context is done. Nothing says what became of them, and each answer says so.
func bulkContextDone(t testing.TB, s *suite, b idempotency.BulkStore) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	r := s.claimsAt(30)
	renewals := make([]idempotency.RenewRequest, len(r))
	completions := make([]idempotency.CompleteRequest, len(r))
	releases := make([]idempotency.ReleaseRequest, len(r))
	for i := range r {
		renewals[i], completions[i], releases[i] = renewal(r[i]), completion(r[i], "1"), release(r[i])
	}
	undecided := func(what string, errs []error) {
		t.Helper()
		if len(errs) != len(r) {
			t.Fatalf("%s: %d requests have %d answers", what, len(r), len(errs))
		}
		for _, err := range errs {
			s.wantUndecided(t, what, err)
			if err == nil {
				t.Fatalf("%s: error is nil, want one: the context is done", what)
			}
		}
	}
	var errs []error
	for _, answer := range b.ClaimAll(ctx, r) {
		errs = append(errs, answer.Err)
	}
	undecided("claims", errs)
	// Whatever became of those, they are the same owner's.
	if answers := b.ClaimAll(s.ctx, r); !answers[0].Claimed || !answers[len(r)-1].Claimed {
		t.Fatalf("claims again = %+v, want them granted", answers)
	}
	undecided("renewals", b.RenewAll(ctx, renewals))
	undecided("completions", b.CompleteAll(ctx, completions))
	undecided("releases", b.ReleaseAll(ctx, releases))
}

// bulkTwoCallers has two callers want the same keys, in other orders. Each key is one caller's, and the other one is told.
func bulkTwoCallers(t testing.TB, s *suite, b idempotency.BulkStore) {
	first := s.claimsAt(200)
	second := slices.Clone(first)
	chance := rand.New(rand.NewPCG(2, 2))
	chance.Shuffle(len(second), func(i, j int) { second[i], second[j] = second[j], second[i] })
	for i := range second {
		second[i].Owner = newOwner()
		second[i].AskFirst = i%2 == 0
	}
	winner := make(map[string]string) // by key
	loser := make(map[string]string)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, requests := range [][]idempotency.ClaimRequest{first, second} {
		wg.Go(func() {
			answers := b.ClaimAll(s.ctx, requests)
			mu.Lock()
			defer mu.Unlock()
			for i, r := range requests {
				switch answer := answers[i]; {
				case answer.Err != nil:
					t.Errorf("claim: %v", answer.Err)
				case !answer.Claimed:
					loser[r.Key] = answer.Entry.Owner
				case winner[r.Key] != "":
					t.Errorf("both have %s, want one of them to have it", r.Key)
				default:
					winner[r.Key] = r.Owner
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(winner, loser); diff != "" || len(winner) != len(first) {
		t.Errorf("winners as they know it, and as the others were told (-know +told):\n%s", diff)
	}
}
