package idempotency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// BulkSizes returns how many requests calls of the guard's store take best, and false if it gains nothing from calls for
// many: then ClaimAll and its like are no better than one call after the other.
func (g *Guard) BulkSizes() (BulkSizes, bool) {
	if g.bulk == nil || g.options.Disabled {
		return BulkSizes{}, false
	}
	return g.bulk.BulkSizes(), true
}

// ClaimAll is Claim for many requests, in as few calls of the store as it can make. For each request it returns a Claim
// or an error, at its place.
func (g *Guard) ClaimAll(ctx context.Context, requests []Request) ([]*Claim, []error) {
	group := claimGroup{guard: g, claims: make([]*Claim, len(requests)), errs: make([]error, len(requests)), kinds: make([]EventKind, len(requests))}
	claims := make([]Claim, len(requests))
	for i, r := range requests {
		claims[i] = Claim{guard: g, request: r, attempt: r.Attempt}
		group.claims[i], group.errs[i], group.kinds[i] = &claims[i], errStorePanicked, EventClaimFailed
	}
	group.claimAndTell(ctx)
	if len(g.options.Hooks) > 0 {
		group.releaseLate(ctx)
	}
	for i, err := range group.errs {
		if err != nil {
			group.claims[i] = nil
		}
	}
	return group.claims, group.errs
}

// claimGroup is claims that are made together, and what became of each.
type claimGroup struct {
	guard  *Guard
	claims []*Claim
	errs   []error
	kinds  []EventKind
}

// claimAndTell makes the claims and tells the hooks what they came to, even where the store does not return.
func (group *claimGroup) claimAndTell(ctx context.Context) {
	defer func() {
		for i, c := range group.claims {
			c.tell(ctx, group.kinds[i], group.errs[i])
		}
	}()
	group.claim(ctx)
}

func (group *claimGroup) claim(ctx context.Context) {
	var asked []int
	var requests []ClaimRequest
	end := time.Time{} // of the first of the claims' deadlines
	for i, c := range group.claims {
		if group.kinds[i], group.errs[i] = c.open(ctx); group.kinds[i] != 0 {
			continue
		}
		group.kinds[i], group.errs[i] = EventClaimFailed, errStorePanicked
		if asked == nil {
			asked, requests = make([]int, 0, len(group.claims)), make([]ClaimRequest, 0, len(group.claims))
		}
		asked, requests = append(asked, i), append(requests, c.claimRequest())
		if end.IsZero() || c.deadline.Before(end) {
			end = c.deadline
		}
	}
	if len(asked) == 0 {
		return
	}
	answered := false
	defer func() {
		if !answered { // the store panicked, perhaps after it had written
			group.giveBack(ctx, asked)
		}
	}()
	limited, cancel := limit(ctx, end)
	defer cancel()
	answers := group.guard.bulkClaim(limited, requests)
	answered = true

	var quietly, told []int
	for k, i := range asked {
		var back back
		group.kinds[i], back, group.errs[i] = group.claims[i].answered(ctx, &answers[k].ClaimResult, answers[k].Err)
		switch back {
		case backQuietly:
			quietly = append(quietly, i)
		case backTold:
			told = append(told, i)
		}
	}
	group.giveBack(ctx, quietly)
	for k, err := range group.giveBack(ctx, told) {
		i := told[k]
		group.errs[i] = errors.Join(group.errs[i], err)
	}
	for _, i := range asked {
		group.kinds[i], group.errs[i] = group.claims[i].failOpen(ctx, group.kinds[i], group.errs[i])
	}
}

// giveBack releases claims that were not begun, once, on a context of its own, as Claim.giveBack does.
func (group *claimGroup) giveBack(ctx context.Context, indexes []int) []error {
	if len(indexes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFloor)
	defer cancel()
	requests := make([]ReleaseRequest, len(indexes))
	for k, i := range indexes {
		requests[k] = group.claims[i].releaseRequest(true)
	}
	errs := group.guard.bulkRelease(ctx, requests)
	for k, i := range indexes {
		if errors.Is(errs[k], ErrClaimLost) {
			errs[k] = nil // it is given back already
		}
		errs[k] = group.claims[i].settleError(release, errs[k])
	}
	return errs
}

// releaseLate releases the claims whose hooks took so long that their work may not begin.
func (group *claimGroup) releaseLate(ctx context.Context) {
	var late []*Claim
	var indexes []int
	for i, c := range group.claims {
		made := group.kinds[i] == EventClaimed || group.kinds[i] == EventTakenOver
		if made && !c.inTime(ctx) {
			late, indexes = append(late, c), append(indexes, i)
		}
	}
	if len(late) == 0 {
		return
	}
	detached, cancel := Detach(ctx)
	defer cancel()
	how := make([]Ending, len(late))
	for k := range how {
		how[k] = EndUnstarted
	}
	for k, err := range group.guard.SettleAll(detached, late, how) {
		group.errs[indexes[k]] = errors.Join(late[k].tooLate(ctx), err)
	}
}

// Ending is how a claim ends.
type Ending uint8

const (
	// EndComplete is Claim.Complete without a result.
	EndComplete Ending = iota + 1
	// EndRelease is Claim.Release.
	EndRelease
	// EndUnstarted is Claim.ReleaseUnstarted.
	EndUnstarted
	// EndGivenUp is Claim.GiveUp of work that is not to be tried again, and EndGivenUpFree of work that may be.
	EndGivenUp
	EndGivenUpFree
)

func (e Ending) completes() bool { return e == EndComplete || e == EndGivenUp }

// event is what the hooks are told of an ending that succeeds.
func (e Ending) event() EventKind {
	switch e {
	case EndComplete:
		return EventCompleted
	case EndUnstarted:
		return EventUnstarted
	case EndGivenUp, EndGivenUpFree:
		return EventGivenUp
	default:
		return EventReleased
	}
}

// SettleAll ends many claims, in as few calls of the store as it can make: each of claims as the Ending at its place
// says. The errors are those of Claim's methods. A claim whose work has collected a transaction is completed by a call of its
// own.
func (g *Guard) SettleAll(ctx context.Context, claims []*Claim, endings []Ending) []error {
	errs := make([]error, len(claims))
	told := len(g.options.Hooks) > 0
	if told {
		for i, c := range claims {
			if c.key != "" {
				errs[i] = errStorePanicked
			}
		}
		defer func() {
			for i, c := range claims {
				if c.key != "" {
					c.tell(ctx, settleEvent(endings[i].event(), errs[i]), errs[i])
				}
			}
		}()
	}
	var completes, releases, commits []int
	var transactions []Transaction
	for i, c := range claims {
		t := c.work.end()
		switch {
		case c.key == "":
		case t != nil && endings[i] == EndComplete:
			commits, transactions = append(commits, i), append(transactions, t)
		case endings[i].completes():
			completes = append(completes, i)
		default:
			releases = append(releases, i)
		}
	}
	g.commitAll(ctx, claims, commits, transactions, errs)
	now := g.now()
	g.tryAll(ctx, completion, claims, completes, errs, func(open []int) []error {
		requests, completed := make([]CompleteRequest, len(open)), make([]*Claim, len(open))
		for k, i := range open {
			requests[k], completed[k] = claims[i].completeRequest(now, nil), claims[i]
		}
		if g.marker != nil {
			return g.mark(ctx, completed, requests)
		}
		errs := g.bulkComplete(ctx, requests)
		for k, c := range completed {
			if errs[k] == nil {
				c.remember(&requests[k])
			}
		}
		return errs
	})
	g.tryAll(ctx, release, claims, releases, errs, func(open []int) []error {
		requests := make([]ReleaseRequest, len(open))
		for k, i := range open {
			requests[k] = claims[i].releaseRequest(endings[i] == EndUnstarted)
		}
		return g.bulkRelease(ctx, requests)
	})
	return errs
}

// tryAll is Claim.try for the claims with the indexes open.
func (g *Guard) tryAll(ctx context.Context, what string, claims []*Claim, open []int, errs []error, f func(open []int) []error) {
	for try := 0; len(open) > 0 && try < settleTries; try++ {
		if try > 0 && !sleep(ctx, settleBackoff<<try) {
			return
		}
		var undecided []int
		for k, err := range f(open) {
			i := open[k]
			if errs[i] = claims[i].settleError(what, err); !settled(err) {
				undecided = append(undecided, i)
			}
		}
		open = undecided
	}
}

// bulkClaim asks a store that takes one request a time one after the other, as its callers have no more to gain.
func (g *Guard) bulkClaim(ctx context.Context, requests []ClaimRequest) []ClaimAnswer {
	if g.marker != nil {
		return g.find(ctx, requests)
	}
	if g.bulk != nil && len(requests) > 1 {
		answers := g.bulk.ClaimAll(ctx, requests)
		if err := oneEach(len(answers), len(requests)); err != nil {
			return slices.Repeat([]ClaimAnswer{{Err: err}}, len(requests))
		}
		return answers
	}
	answers := make([]ClaimAnswer, len(requests))
	for i, r := range requests {
		answers[i].ClaimResult, answers[i].Err = g.store.Claim(ctx, r)
	}
	return answers
}

func (g *Guard) bulkComplete(ctx context.Context, requests []CompleteRequest) []error {
	if g.bulk != nil && len(requests) > 1 {
		return checked(g.bulk.CompleteAll(ctx, requests), len(requests))
	}
	return each(requests, func(r CompleteRequest) error { return g.store.Complete(ctx, r) })
}

func (g *Guard) bulkRelease(ctx context.Context, requests []ReleaseRequest) []error {
	if g.marker != nil {
		return make([]error, len(requests)) // nothing was claimed
	}
	if g.bulk != nil && len(requests) > 1 {
		return checked(g.bulk.ReleaseAll(ctx, requests), len(requests))
	}
	return each(requests, func(r ReleaseRequest) error { return g.store.Release(ctx, r) })
}

func (g *Guard) bulkRenew(ctx context.Context, requests []RenewRequest) []error {
	if g.bulk != nil && len(requests) > 1 {
		return checked(g.bulk.RenewAll(ctx, requests), len(requests))
	}
	return each(requests, func(r RenewRequest) error { return g.store.Renew(ctx, r) })
}

func each[R any](requests []R, f func(R) error) []error {
	errs := make([]error, len(requests))
	for i, r := range requests {
		errs[i] = f(r)
	}
	return errs
}

// oneEach is the error of a store that has not answered each of the requests. Which of them it has answered is open then,
// and none may be taken for done.
func oneEach(answers, requests int) error {
	if answers == requests {
		return nil
	}
	return fmt.Errorf("idempotency: store gave %d answers to %d requests, want one for each", answers, requests)
}

func checked(errs []error, requests int) []error {
	if err := oneEach(len(errs), requests); err != nil {
		return slices.Repeat([]error{err}, requests)
	}
	return errs
}
