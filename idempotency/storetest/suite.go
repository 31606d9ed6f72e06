package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// reporter is the part of testing.TB that checks use below their top, so that they serve in a *rapid.T as well.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// suite is one store under one check.
type suite struct {
	store idempotency.Store
	ctx   context.Context
	// start is the moment at which the check begins, a whole second. It lies an hour ahead, so that a server that deletes
	// what has expired by its own clock deletes nothing that a check still needs.
	start time.Time
}

const (
	leaseTime  = time.Minute
	expiryTime = time.Hour
	skew       = time.Second
)

func newSuite(t testing.TB, store idempotency.Store) *suite {
	return &suite{store: store, ctx: t.Context(), start: time.Unix(time.Now().Add(time.Hour).Unix(), 0)}
}

func newKey() string   { return "storetest#" + rand.Text() }
func newOwner() string { return rand.Text() }

// claimAt returns a request for a key with the usual lease, expiry and skew.
func (s *suite) claimAt(key string, now time.Time) idempotency.ClaimRequest {
	return idempotency.ClaimRequest{
		Key: key, Owner: newOwner(), Now: now, Lease: now.Add(leaseTime), Expiry: now.Add(expiryTime), Skew: skew,
	}
}

// completion returns a request that completes a claim at its own time.
func completion(r idempotency.ClaimRequest, data string) idempotency.CompleteRequest {
	c := idempotency.CompleteRequest{Key: r.Key, Owner: r.Owner, Now: r.Now, Expiry: r.Expiry}
	if data != "" {
		c.Data = []byte(data)
	}
	return c
}

func release(r idempotency.ClaimRequest) idempotency.ReleaseRequest {
	return idempotency.ReleaseRequest{Key: r.Key, Owner: r.Owner, Now: r.Now, CountAttempts: r.CountAttempts}
}

// renewal returns a request that prolongs a claim by one minute and one second, under a new owner.
func renewal(r idempotency.ClaimRequest) idempotency.RenewRequest {
	return idempotency.RenewRequest{
		Key: r.Key, Owner: r.Owner, NewOwner: newOwner(),
		Now: r.Now, Lease: r.Lease.Add(61 * time.Second), Expiry: r.Expiry.Add(61 * time.Second),
	}
}

// inProgress is the entry that a claim leaves.
func inProgress(r idempotency.ClaimRequest) idempotency.Entry {
	return idempotency.Entry{
		Status: idempotency.InProgress, Owner: r.Owner, Fingerprint: r.Fingerprint,
		Lease: time.UnixMilli(r.Lease.UnixMilli()), Expiry: time.Unix(r.Expiry.Unix(), 0),
	}
}

// completed is the entry that a completion of the claim leaves.
func completed(r idempotency.ClaimRequest, c idempotency.CompleteRequest) idempotency.Entry {
	return idempotency.Entry{
		Status: idempotency.Completed, Owner: c.Owner, Fingerprint: r.Fingerprint,
		Expiry: time.Unix(c.Expiry.Unix(), 0), Data: c.Data,
	}
}

// mustClaim sends a claim that must be granted, and checks the entry that is returned, its attempts excepted.
func (s *suite) mustClaim(t reporter, r idempotency.ClaimRequest) idempotency.ClaimResult {
	t.Helper()
	got, err := s.store.Claim(s.ctx, r)
	if err != nil {
		t.Fatalf("claim at %s: %v", s.at(r.Now), err)
	}
	if !got.Claimed {
		t.Fatalf("claim at %s: refused by %s, want it granted", s.at(r.Now), s.describe(got.Entry))
	}
	want := inProgress(r)
	want.Attempts = got.Entry.Attempts
	s.wantEntry(t, "entry of the granted claim", got.Entry, want)
	return got
}

// mustRefuse sends a claim that must be refused, and returns the entry that stands in its way.
func (s *suite) mustRefuse(t reporter, r idempotency.ClaimRequest) idempotency.Entry {
	t.Helper()
	got, err := s.store.Claim(s.ctx, r)
	if err != nil {
		t.Fatalf("claim at %s: %v, want it refused without an error", s.at(r.Now), err)
	}
	if got.Claimed {
		t.Fatalf("claim at %s: granted, want it refused", s.at(r.Now))
	}
	if got.TookOver {
		t.Errorf("claim at %s: refused, but TookOver is true", s.at(r.Now))
	}
	return got.Entry
}

// wantHeld reads the entry of a key that must be held at now, through a claim that is refused.
func (s *suite) wantHeld(t reporter, what string, now time.Time, key string, want idempotency.Entry) {
	t.Helper()
	s.wantEntry(t, what, s.mustRefuse(t, s.claimAt(key, now)), want)
}

// wantFree claims a key that must be free at now.
func (s *suite) wantFree(t reporter, what string, now time.Time, key string) idempotency.ClaimResult {
	t.Helper()
	r := s.claimAt(key, now)
	got, err := s.store.Claim(s.ctx, r)
	switch {
	case err != nil:
		t.Fatalf("%s: claim at %s: %v", what, s.at(now), err)
	case !got.Claimed:
		t.Fatalf("%s: claim at %s: refused by %s, want the key free", what, s.at(now), s.describe(got.Entry))
	}
	s.wantEntry(t, what+": entry of the new claim", got.Entry, inProgress(r))
	// What the store returned may be what it was told and not what it wrote.
	s.wantHeld(t, what+": entry after the new claim", now, key, inProgress(r))
	return got
}

func (s *suite) mustComplete(t reporter, r idempotency.CompleteRequest) {
	t.Helper()
	s.wantError(t, "complete", s.store.Complete(s.ctx, r), nil)
}

func (s *suite) mustRelease(t reporter, r idempotency.ReleaseRequest) {
	t.Helper()
	s.wantError(t, "release", s.store.Release(s.ctx, r), nil)
}

func (s *suite) mustRenew(t reporter, r idempotency.RenewRequest) {
	t.Helper()
	s.wantError(t, "renew", s.store.Renew(s.ctx, r), nil)
}

func (s *suite) wantError(t reporter, what string, got, want error) {
	t.Helper()
	if want == nil && got != nil || want != nil && !errors.Is(got, want) {
		t.Fatalf("%s: error is %v, want %v", what, got, want)
	}
}

// wantEntry compares what is observable of two entries. The lease of a completed entry means nothing.
func (s *suite) wantEntry(t reporter, what string, got, want idempotency.Entry) {
	t.Helper()
	if got.Status == idempotency.Completed {
		got.Lease = want.Lease
	}
	// cmp takes its time over a large result even if nothing differs.
	if bytes.Equal(got.Data, want.Data) && (got.Data == nil) == (want.Data == nil) {
		got.Data, want.Data = nil, nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// at says a time as its distance from the start.
func (s *suite) at(now time.Time) string { return fmt.Sprintf("start+%s", now.Sub(s.start)) }

func (s *suite) describe(e idempotency.Entry) string {
	lease := "none"
	if !e.Lease.IsZero() {
		lease = s.at(e.Lease)
	}
	return fmt.Sprintf("{%s owner=%q lease=%s expiry=%s}", e.Status, e.Owner, lease, s.at(e.Expiry))
}
