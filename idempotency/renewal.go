package idempotency

import (
	"context"
	"errors"
	"time"
)

// RenewAll exchanges claims whose work was not begun yet for new ones with as much time as a claim made now. If it
// returns an error for one, its work must not begin: ErrClaimLost if it is someone else's by now, and otherwise it was
// released, as far as the store can be reached.
func (g *Guard) RenewAll(ctx context.Context, claims []*Claim) []error {
	errs := make([]error, len(claims))
	if g.marker != nil {
		return errs // nothing was claimed
	}
	renewed := make([]Claim, len(claims))
	var asked []int
	var requests []RenewRequest
	end := time.Time{} // of the first of the deadlines
	for i, c := range claims {
		r := &renewed[i]
		*r = Claim{guard: c.guard, request: c.request, key: c.key, attempt: c.attempt, owner: c.guard.newOwner()}
		if !r.schedule(ctx) || ctx.Err() != nil {
			errs[i] = r.tooLate(ctx)
			continue
		}
		errs[i] = errStorePanicked
		if end.IsZero() || r.deadline.Before(end) {
			end = r.deadline
		}
		asked, requests = append(asked, i), append(requests, RenewRequest{
			Key: c.key, Owner: c.owner, NewOwner: r.owner, Now: r.claimed, Lease: r.lease, Expiry: r.claimExpiry(),
		})
	}
	defer g.renewalEnded(ctx, claims, renewed, errs)
	if len(asked) == 0 {
		return errs
	}
	limited, cancel := limit(ctx, end)
	defer cancel()
	for k, err := range g.bulkRenew(limited, requests) {
		c, r := claims[asked[k]], &renewed[asked[k]]
		if err = c.settleError("renewal", err); err == nil && !r.inTime(ctx) {
			err = r.tooLate(ctx)
		}
		if errs[asked[k]] = err; err == nil {
			c.owner, c.claimed, c.lease = r.owner, r.claimed, r.lease
			c.startBy, c.deadline, c.end = r.startBy, r.deadline, r.end
			c.putOff()
		}
	}
	return errs
}

// renewalEnded gives back what was not renewed, and tells the hooks what each renewal came to. The claim may be the old
// one or the new one then: what is released twice is released.
func (g *Guard) renewalEnded(ctx context.Context, claims []*Claim, renewed []Claim, errs []error) {
	both := claimGroup{guard: g}
	var indexes []int
	for i, c := range claims {
		if errs[i] != nil && !errors.Is(errs[i], ErrClaimLost) {
			indexes = append(indexes, len(both.claims), len(both.claims)+1)
			both.claims = append(both.claims, c, &renewed[i])
		}
	}
	back := both.giveBack(ctx, indexes)
	for i, c := range claims {
		kind := EventRenewed
		switch {
		case errs[i] == nil:
		case errors.Is(errs[i], ErrClaimLost):
			kind = EventReleaseFailed
		default:
			kind = EventUnstarted
			if err := errors.Join(back[0], back[1]); err != nil {
				kind, errs[i] = EventReleaseFailed, errors.Join(errs[i], err)
			}
			back = back[2:]
		}
		c.tell(ctx, kind, errs[i])
	}
}

// putOff moves StartBy on where the store's answer has come so late that the work could not begin by then. A new claim
// would be answered no sooner, and would be renewed again, and so on: the work would never begin. So it may wait for as
// long as asking took, which a new claim would lose as well, or for a tenth of the time that is left.
func (c *Claim) putOff() {
	if c.startBy.IsZero() {
		return
	}
	now, asked := time.Now(), c.end.Add(-c.lease.Sub(c.claimed))
	if t := now.Add(min(now.Sub(asked), c.deadline.Sub(now)/10)).Round(0); t.After(c.startBy) {
		c.startBy = t
	}
}
