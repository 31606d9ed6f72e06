package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// markCheck is one thing that a Marker must do besides what every store must.
type markCheck struct {
	name string
	run  func(t testing.TB, s *suite, m idempotency.Marker)
}

var markChecks = []markCheck{
	{"nothing", markNothing},
	{"free keys", markFree},
	{"held keys", markHeld},
	{"both sides of the limits", markLimits},
	{"another tool's entries", markPlanted},
	{"64 marks of one key", markTogether},
	{"marks against claims", markAgainstClaims},
	{"1,000 keys", markThousand},
	{"one key twice", markKeyTwice},
	{"context done", markContextDone},
}

// markAt returns a mark of a key with the usual expiry and skew.
func (s *suite) markAt(key string, now time.Time) idempotency.MarkRequest {
	return idempotency.MarkRequest{CompleteRequest: idempotency.CompleteRequest{
		Key: key, Owner: newOwner(), Now: now, Expiry: now.Add(expiryTime)}, Skew: skew}
}

// marked is the entry that a mark leaves.
func marked(r idempotency.MarkRequest) idempotency.Entry {
	return idempotency.Entry{
		Status: idempotency.Completed, Owner: r.Owner, Fingerprint: r.Fingerprint, Expiry: time.Unix(r.Expiry.Unix(), 0), Data: r.Data,
	}
}

// mustMark sends marks of which each must have the answer at its place.
func (s *suite) mustMark(t testing.TB, what string, m idempotency.Marker, requests []idempotency.MarkRequest, want []error) {
	t.Helper()
	wantErrors(t, what, m.MarkAll(s.ctx, requests), want)
}

// wantFound asks for keys of which each must have the entry at its place.
func (s *suite) wantFound(t testing.TB, what string, m idempotency.Marker, now time.Time, keys []string, want []idempotency.Entry) {
	t.Helper()
	requests := make([]idempotency.FindRequest, len(keys))
	for i, key := range keys {
		requests[i] = idempotency.FindRequest{Key: key, Now: now, Skew: skew}
	}
	got := m.FindAll(s.ctx, requests)
	if len(got) != len(want) {
		t.Fatalf("%s: %d keys have %d answers", what, len(want), len(got))
	}
	for i := range got {
		if got[i].Err != nil {
			t.Fatalf("%s: key %d: %v", what, i, got[i].Err)
		}
		s.wantEntry(t, fmt.Sprintf("%s: key %d", what, i), got[i].Entry, want[i])
	}
}

func markNothing(t testing.TB, s *suite, m idempotency.Marker) {
	if found, errs := m.FindAll(s.ctx, nil), m.MarkAll(s.ctx, nil); len(found)+len(errs) != 0 {
		t.Errorf("no requests have %d and %d answers, want none", len(found), len(errs))
	}
}

// markFree finds and marks keys that are free, in each of the ways in which one can be, with and without what a mark leaves.
func markFree(t testing.TB, s *suite, m idempotency.Marker) {
	now := s.start.Add(2 * expiryTime)
	before := map[string]func(r idempotency.ClaimRequest){
		"absent":   func(idempotency.ClaimRequest) {},
		"released": func(r idempotency.ClaimRequest) { s.mustClaim(t, r); s.mustRelease(t, release(r)) },
		"lease over": func(r idempotency.ClaimRequest) {
			r.Expiry = now.Add(expiryTime)
			s.mustClaim(t, r)
		},
		"expired": func(r idempotency.ClaimRequest) {
			s.mustClaim(t, r)
			s.mustComplete(t, completion(r, `"old"`))
		},
		"released, counts": func(r idempotency.ClaimRequest) {
			r.Expiry, r.CountAttempts = now.Add(expiryTime), true
			s.mustClaim(t, r)
			s.mustRelease(t, release(r))
		},
	}
	for name, prepare := range before {
		for _, full := range []bool{true, false} {
			r := s.claimAt(newKey(), s.start)
			r.Fingerprint = "old"
			prepare(r)
			mark := s.markAt(r.Key, now)
			if full {
				mark.Fingerprint, mark.Data = "new", []byte(`{"total":1}`)
			}
			what := fmt.Sprintf("%s, full is %t", name, full)
			s.wantFound(t, what+": before", m, now, []string{r.Key}, []idempotency.Entry{{}})
			s.mustMark(t, what, m, []idempotency.MarkRequest{mark}, []error{nil})
			s.wantFound(t, what+": after", m, now, []string{r.Key}, []idempotency.Entry{marked(mark)})
			s.wantHeld(t, what+": for a claim", now, r.Key, marked(mark))
			next := s.claimAt(r.Key, mark.Expiry.Add(time.Second))
			if got := s.mustClaim(t, next); got.TookOver {
				t.Errorf("%s: the claim of an expired mark took over, want that it did not", what)
			}
		}
	}
}

// markHeld marks keys that are held. Nothing of them changes.
func markHeld(t testing.TB, s *suite, m idempotency.Marker) {
	claim := s.claimAt(newKey(), s.start)
	claim.Fingerprint = "f"
	s.mustClaim(t, claim)
	over := s.markAt(claim.Key, s.start)
	over.Fingerprint = "f"
	s.mustMark(t, "mark of a claim", m, []idempotency.MarkRequest{over}, []error{idempotency.ErrClaimLost})
	s.wantFound(t, "claim", m, s.start, []string{claim.Key}, []idempotency.Entry{inProgress(claim)})
	s.mustComplete(t, completion(claim, `"mine"`))
	over.Data = []byte(`"not mine"`)
	s.mustMark(t, "mark of a completion", m, []idempotency.MarkRequest{over}, []error{idempotency.ErrAlreadyCompleted})
	s.wantHeld(t, "completion", s.start, claim.Key, completed(claim, completion(claim, `"mine"`)))

	first := s.markAt(newKey(), s.start)
	first.Fingerprint, first.Data = "f", []byte("1")
	s.mustMark(t, "mark", m, []idempotency.MarkRequest{first}, []error{nil})
	again := first
	again.Now, again.Expiry = again.Now.Add(time.Minute), again.Expiry.Add(time.Minute)
	s.mustMark(t, "mark sent twice", m, []idempotency.MarkRequest{again}, []error{nil})
	for fingerprint, want := range map[string]error{
		"f": idempotency.ErrAlreadyCompleted, "": idempotency.ErrAlreadyCompleted, "other": idempotency.ErrFingerprintMismatch,
	} {
		second := s.markAt(first.Key, s.start)
		second.Fingerprint, second.Data = fingerprint, []byte("2")
		err := m.MarkAll(s.ctx, []idempotency.MarkRequest{second})[0]
		s.wantError(t, fmt.Sprintf("mark by another run, fingerprint %q", fingerprint), err, want)
		if lost := errors.Is(err, idempotency.ErrClaimLost); lost != (fingerprint == "other") {
			t.Errorf("mark by another run, fingerprint %q: error is %v, want ErrClaimLost for another one alone", fingerprint, err)
		}
	}
	s.wantHeld(t, "mark after others", s.start, first.Key, marked(first))
	s.wantError(t, "release of a mark by another", s.store.Release(s.ctx, release(claimOf(first, newOwner()))), idempotency.ErrClaimLost)
	s.wantError(t, "release of a mark by its own", s.store.Release(s.ctx, release(claimOf(first, first.Owner))),
		idempotency.ErrAlreadyCompleted)
}

func claimOf(r idempotency.MarkRequest, owner string) idempotency.ClaimRequest {
	return idempotency.ClaimRequest{Key: r.Key, Owner: owner, Now: r.Now}
}

// markLimits has keys that are held at one moment and free at the next.
func markLimits(t testing.TB, s *suite, m idempotency.Marker) {
	claim := s.claimAt(newKey(), s.start)
	s.mustClaim(t, claim)
	first := s.markAt(newKey(), s.start)
	s.mustMark(t, "mark", m, []idempotency.MarkRequest{first}, []error{nil})
	for _, test := range []struct {
		key        string
		held, free time.Time
		entry      idempotency.Entry
		err        error
	}{
		{claim.Key, claim.Lease.Add(skew), claim.Lease.Add(skew + time.Millisecond), inProgress(claim), idempotency.ErrClaimLost},
		{first.Key, first.Expiry.Add(999 * time.Millisecond), first.Expiry.Add(time.Second), marked(first), idempotency.ErrAlreadyCompleted},
	} {
		what := test.entry.Status.String()
		s.wantFound(t, what+" at the limit", m, test.held, []string{test.key}, []idempotency.Entry{test.entry})
		s.mustMark(t, what+" at the limit", m, []idempotency.MarkRequest{s.markAt(test.key, test.held)}, []error{test.err})
		s.wantFound(t, what+" after the limit", m, test.free, []string{test.key}, []idempotency.Entry{{}})
		second := s.markAt(test.key, test.free)
		s.mustMark(t, what+" after the limit", m, []idempotency.MarkRequest{second}, []error{nil})
		s.wantFound(t, what+" marked", m, test.free, []string{test.key}, []idempotency.Entry{marked(second)})
	}
	// A completion of the claim that was marked over comes too late.
	s.wantError(t, "completion after a mark", s.store.Complete(s.ctx, completion(claim, "")), idempotency.ErrClaimLost)
}

// markPlanted has a claim without a lease, which is held until its expiry.
func markPlanted(t testing.TB, s *suite, m idempotency.Marker) {
	p, ok := m.(Planter)
	if !ok {
		return
	}
	key := newKey()
	e := idempotency.Entry{Status: idempotency.InProgress, Expiry: s.start}
	p.Plant(t, key, e)
	s.wantFound(t, "claim without a lease", m, s.start, []string{key}, []idempotency.Entry{e})
	s.mustMark(t, "claim without a lease", m, []idempotency.MarkRequest{s.markAt(key, s.start)}, []error{idempotency.ErrClaimLost})
	late := s.markAt(key, s.start.Add(time.Second))
	s.wantFound(t, "claim without a lease, expired", m, late.Now, []string{key}, []idempotency.Entry{{}})
	s.mustMark(t, "claim without a lease, expired", m, []idempotency.MarkRequest{late}, []error{nil})
	s.wantHeld(t, "mark", late.Now, key, marked(late))
}

// markTogether has one of many marks leave its own, and the others find it.
func markTogether(t testing.TB, s *suite, m idempotency.Marker) {
	key := newKey()
	requests, errs := make([]idempotency.MarkRequest, 64), make([]error, 64)
	for i := range requests {
		requests[i] = s.markAt(key, s.start)
	}
	together(len(requests), func(i int) { errs[i] = m.MarkAll(s.ctx, requests[i:i+1])[0] })
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Fatalf("marks %d and %d both left their own", winner, i)
		default:
			s.wantError(t, fmt.Sprintf("mark %d", i), err, idempotency.ErrAlreadyCompleted)
		}
	}
	if winner < 0 {
		t.Fatal("none of 64 marks was made")
	}
	s.wantHeld(t, "entry", s.start, key, marked(requests[winner]))
}

// markAgainstClaims has marks and claims of a key at the same time. Either one claim is granted and every mark refused, or
// one mark is made and every claim refused.
func markAgainstClaims(t testing.TB, s *suite, m idempotency.Marker) {
	for round := range 8 {
		key := newKey()
		var mu sync.Mutex
		claims, marks, lost := 0, 0, 0
		together(16, func(i int) {
			if i%2 == round%2 { // whoever starts last is often the first
				got, err := s.store.Claim(s.ctx, s.claimAt(key, s.start))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				if got.Claimed {
					claims++
				}
				return
			}
			err := m.MarkAll(s.ctx, []idempotency.MarkRequest{s.markAt(key, s.start)})[0]
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				marks++
			case errors.Is(err, idempotency.ErrClaimLost):
				lost++
			case !errors.Is(err, idempotency.ErrAlreadyCompleted):
				t.Errorf("mark: %v", err)
			}
		})
		if claims+marks != 1 || claims == 1 && lost != 8 {
			t.Fatalf("%d claims were granted, %d marks made and %d refused by a claim, want one winner", claims, marks, lost)
		}
	}
}

// markThousand has more requests than the sizes say, of keys that are free and held, in any order.
func markThousand(t testing.TB, s *suite, m idempotency.Marker) {
	const n = 1000
	claims := s.claimsAt(n / 10)
	keys, want := make([]string, n), make([]idempotency.Entry, n)
	requests, errs, after := make([]idempotency.MarkRequest, n), make([]error, n), make([]idempotency.Entry, n)
	for i, place := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
		r := s.markAt(newKey(), s.start)
		r.Data = fmt.Append(nil, i)
		after[place] = marked(r)
		if i < len(claims) {
			s.mustClaim(t, claims[i])
			r.Key, want[place], errs[place] = claims[i].Key, inProgress(claims[i]), idempotency.ErrClaimLost
			after[place] = want[place]
		}
		keys[place], requests[place] = r.Key, r
	}
	s.wantFound(t, "before", m, s.start, keys, want)
	s.mustMark(t, "marks", m, requests, errs)
	s.wantFound(t, "after", m, s.start, keys, after)
}

// markKeyTwice has one key twice in a call, and checks that what was asked for is left alone, and what was stored.
func markKeyTwice(t testing.TB, s *suite, m idempotency.Marker) {
	a, b := s.markAt(newKey(), s.start), s.markAt(newKey(), s.start)
	second := s.markAt(a.Key, s.start)
	b.Data = []byte("1")
	requests := []idempotency.MarkRequest{a, b, second}
	requests[1].Data = []byte("1")
	s.mustMark(t, "marks", m, requests, []error{nil, nil, idempotency.ErrAlreadyCompleted})
	for i, r := range []idempotency.MarkRequest{a, b, second} {
		if requests[i].Owner != r.Owner {
			t.Errorf("request %d has become another", i)
		}
	}
	requests[1].Data[0] = '2'
	copied := m.FindAll(s.ctx, []idempotency.FindRequest{{Key: b.Key, Now: s.start, Skew: skew}})[0].Entry.Data
	if len(copied) > 0 {
		copied[0] = '3'
	}
	s.wantFound(t, "one key twice", m, s.start, []string{a.Key, b.Key, a.Key}, []idempotency.Entry{marked(a), marked(b), marked(a)})
}

// markContextDone has a call whose context has ended. It says so, and has changed nothing.
func markContextDone(t testing.TB, s *suite, m idempotency.Marker) {
	done, cancel := context.WithCancel(s.ctx)
	cancel()
	requests := []idempotency.MarkRequest{s.markAt(newKey(), s.start), s.markAt(newKey(), s.start)}
	for i, err := range m.MarkAll(done, requests) {
		s.wantError(t, fmt.Sprintf("mark %d", i), err, context.Canceled)
	}
	keys := []string{requests[0].Key, requests[1].Key}
	for i, answer := range m.FindAll(done, []idempotency.FindRequest{{Key: keys[0], Now: s.start}, {Key: keys[1], Now: s.start}}) {
		s.wantError(t, fmt.Sprintf("find %d", i), answer.Err, context.Canceled)
	}
	s.wantFound(t, "after that", m, s.start, keys, make([]idempotency.Entry, 2))
}
