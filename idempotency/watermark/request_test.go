package watermark_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

var now = time.Unix(1_800_000_000, 0)

func claimOf(owner string) watermark.ClaimRequest {
	return watermark.ClaimRequest{
		Key: "k", Owner: owner, Now: now, Lease: now.Add(time.Minute), Skew: time.Second, Expiry: now.Add(time.Hour),
	}
}

func TestValidate(t *testing.T) {
	type request interface{ Validate() error }
	claim := func(change func(*watermark.ClaimRequest)) request {
		r := claimOf("a")
		change(&r)
		return r
	}
	advance := func(change func(*watermark.AdvanceRequest)) request {
		r := watermark.AdvanceRequest{Key: "k", Owner: "a", Now: now, To: whole("5"), Expiry: now.Add(time.Hour)}
		change(&r)
		return r
	}
	rewind := func(change func(*watermark.RewindRequest)) request {
		r := watermark.RewindRequest{Key: "k", Now: now, Expiry: now.Add(time.Hour)}
		change(&r)
		return r
	}
	for _, test := range []struct {
		name string
		r    request
		err  string
	}{
		{"claim", claim(func(*watermark.ClaimRequest) {}), ""},
		{"claim, shortest", claim(func(r *watermark.ClaimRequest) {
			r.Skew, r.Lease, r.Expiry = 0, now.Add(time.Millisecond), now.Add(time.Second)
		}), ""},
		{"claim, key", claim(func(r *watermark.ClaimRequest) { r.Key = "" }), "key is empty"},
		{"claim, owner", claim(func(r *watermark.ClaimRequest) { r.Owner = "" }), "owner is empty"},
		{"claim, lease", claim(func(r *watermark.ClaimRequest) { r.Lease = now.Add(999 * time.Microsecond) }),
			"lease ends 999µs after now, want 1ms or more"},
		{"claim, skew", claim(func(r *watermark.ClaimRequest) { r.Skew = -1 }), "skew is -1ns, want 0 or more"},
		{"claim, expiry", claim(func(r *watermark.ClaimRequest) { r.Expiry = now.Add(61 * time.Second) }),
			"expiry is 1s after the lease, want 1s or more beyond the skew of 1s"},
		{"claim, expiry is behind", claim(func(r *watermark.ClaimRequest) { r.Expiry = now.Add(62 * time.Second) }), ""},

		{"advance", advance(func(*watermark.AdvanceRequest) {}), ""},
		{"advance to nothing", advance(func(r *watermark.AdvanceRequest) { r.To = watermark.Position{} }), ""},
		{"advance, key", advance(func(r *watermark.AdvanceRequest) { r.Key = "" }), "key is empty"},
		{"advance, owner", advance(func(r *watermark.AdvanceRequest) { r.Owner = "" }), "owner is empty"},
		{"advance, position", advance(func(r *watermark.AdvanceRequest) { r.To.Sub = -1 }), "Position.Sub is -1"},
		{"advance, expiry", advance(func(r *watermark.AdvanceRequest) { r.Expiry = now }),
			"expiry is 0s after now, want 1s or more"},

		{"rewind", rewind(func(*watermark.RewindRequest) {}), ""},
		{"rewind, key", rewind(func(r *watermark.RewindRequest) { r.Key = "" }), "key is empty"},
		{"rewind, position", rewind(func(r *watermark.RewindRequest) { r.To = whole("x") }), `Position.Sequence is "x"`},
		{"rewind, expiry", rewind(func(r *watermark.RewindRequest) { r.Expiry = now }), "expiry is 0s after now"},
	} {
		err := test.r.Validate()
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: error is %v, want one that contains %q", test.name, err, test.err)
		}
	}
}

// TestInProgress has the caller's clock differ from the machine's: Free is by the machine's.
func TestInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := claimOf("a")
		want := &idempotency.InProgressError{
			Key: "k", Lease: now.Add(time.Second), Free: time.Now().Add(2*time.Second + time.Millisecond),
		}
		err := r.InProgress(now.Add(time.Second))
		if diff := cmp.Diff(want, err); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		if !errors.Is(err, idempotency.ErrInProgress) {
			t.Errorf("%v is no %v", err, idempotency.ErrInProgress)
		}
		if got := r.InProgress(now.Add(-time.Hour)).Free; !got.Equal(time.Now()) {
			t.Errorf("of a lease that is over: free at %v, want %v", got, time.Now())
		}
	})
}
