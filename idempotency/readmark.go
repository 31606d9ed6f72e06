package idempotency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Marker is implemented by stores with which a guard can have Options.ReadThenMark: they find what is done without
// claiming it, and record what is done without a claim. A store that wraps another has to forward it.
//
// Both methods take many requests and answer each, at its place, by the rules of BulkStore.
type Marker interface {
	Store

	// FindAll returns what stands in the way of a claim of each key: its entry, or one that is Absent if the key is free by
	// the rules of Store.Claim. It changes nothing. It finds all that was stored before it was called.
	FindAll(ctx context.Context, requests []FindRequest) []FindAnswer

	// MarkAll makes each key Completed if it is free by the rules of Store.Claim, with the request's fingerprint and data, and
	// without anything of an earlier life. Each mark is one conditional write.
	//
	// If the key is not free, it changes nothing, and the answer is what MarkRequest.RefusedBy says of the entry that is in
	// its way, which may be wrapped. It returns ErrResultNotStored if the key is marked, but Data is too large to be stored
	// with it, and ErrStoreFull and ErrStoreUnusable as Store.Claim does. After any other error it is open whether it is marked.
	MarkAll(ctx context.Context, requests []MarkRequest) []error
}

// FindRequest asks for the entry of a key.
type FindRequest struct {
	Key  string        // as stored: the namespace is part of it
	Now  time.Time     // the caller's clock
	Skew time.Duration // how far the clocks of two workers may differ
}

// FindAnswer is the answer to a FindRequest.
type FindAnswer struct {
	Entry Entry
	Err   error
}

// MarkRequest makes a key Completed that nobody has claimed.
type MarkRequest struct {
	// CompleteRequest is what a completion would be. Its Owner is fresh for every run of the work.
	CompleteRequest
	Fingerprint string        // empty: none
	Skew        time.Duration // how far the clocks of two workers may differ
}

// RefusedBy returns the answer to a mark that is refused by an entry which is not free: nil if it is the mark's own, which was
// sent twice; ErrAlreadyCompleted if another run has marked the key or completed it; and ErrClaimLost if another worker has
// claimed it, or has completed it for another payload, in which case the error matches ErrFingerprintMismatch as well.
func (r *MarkRequest) RefusedBy(e *Entry) error {
	switch {
	case e.Status == Completed && e.Owner == r.Owner:
		return nil
	case e.Status == Completed && e.Fingerprint != "" && r.Fingerprint != "" && e.Fingerprint != r.Fingerprint:
		return fmt.Errorf("%w: %w", ErrClaimLost, ErrFingerprintMismatch)
	case e.Status == Completed:
		return ErrAlreadyCompleted
	default:
		return ErrClaimLost
	}
}

// validateMark checks that options which are about claims are left alone where nothing is claimed.
func (o *Options) validateMark(check func(ok bool, name string, got any, want string)) {
	if !o.ReadThenMark {
		return
	}
	const why = " with Options.ReadThenMark: it claims nothing"
	check(o.Lease == 0, "Lease", o.Lease, "0"+why)
	check(!o.CountAttempts, "CountAttempts", o.CountAttempts, "false"+why)
	check(o.AskFirst == AskFirstDefault, "AskFirst", o.AskFirst, "AskFirstDefault"+why)
	check(o.HeldElsewhere == HeldElsewhereFails, "HeldElsewhere", o.HeldElsewhere, "HeldElsewhereFails"+why)
}

// markerOf returns the store as a Marker if the guard is to read and mark, and nil if it is to claim.
func (o *Options) markerOf(store Store) (Marker, error) {
	if !o.ReadThenMark {
		return nil, nil
	}
	marker, ok := store.(Marker)
	if !ok {
		return nil, fmt.Errorf("idempotency: Options.ReadThenMark is true and store is a %T, want a Marker", store)
	}
	return marker, nil
}

// scheduleUnclaimed is schedule for work that is not claimed: there is no lease, so that only the invocation ends it.
func (c *Claim) scheduleUnclaimed(ctx context.Context) bool {
	now := time.Now()
	c.claimed = now
	if c.guard.options.Clock != nil {
		c.claimed = c.guard.options.Clock()
	}
	invocation, limited := invocationDeadline(ctx)
	if !limited {
		return true
	}
	left := invocation.Sub(now)
	work := left - margin(left)
	c.lease = wholeMilliseconds(c.claimed.Add(left))
	c.deadline, c.end = now.Add(work).Round(0), now.Add(left).Round(0) // see schedule
	return work > 0
}

// find is bulkClaim for a guard that claims nothing: what is free is the caller's to begin.
func (g *Guard) find(ctx context.Context, claims []ClaimRequest) []ClaimAnswer {
	requests := make([]FindRequest, len(claims))
	for i, r := range claims {
		requests[i] = FindRequest{Key: r.Key, Now: r.Now, Skew: r.Skew}
	}
	found := g.marker.FindAll(ctx, requests)
	if err := oneEach(len(found), len(requests)); err != nil {
		return slices.Repeat([]ClaimAnswer{{Err: err}}, len(requests))
	}
	answers := make([]ClaimAnswer, len(found))
	for i, f := range found {
		claimed := f.Err == nil && f.Entry.Status == Absent
		answers[i] = ClaimAnswer{ClaimResult: ClaimResult{Claimed: claimed, Entry: f.Entry}, Err: f.Err}
	}
	return answers
}

// mark is bulkComplete for a guard that claims nothing. That another run has done the same work meanwhile is no error: it
// is what work has to bear that is not claimed.
func (g *Guard) mark(ctx context.Context, claims []*Claim, completions []CompleteRequest) []error {
	requests := make([]MarkRequest, len(completions))
	for i, r := range completions {
		requests[i] = MarkRequest{CompleteRequest: r, Fingerprint: claims[i].request.Fingerprint, Skew: g.skew}
	}
	errs := slices.Clone(checked(g.marker.MarkAll(ctx, requests), len(requests)))
	for i, err := range errs {
		switch {
		case err == nil:
			claims[i].remember(&completions[i])
		case errors.Is(err, ErrAlreadyCompleted):
			errs[i] = nil // with another result, perhaps, and another expiry: those are not known here
		}
	}
	return errs
}
