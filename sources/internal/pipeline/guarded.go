package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
)

// guarded is the stages of a source with a guard, for one batch.
type guarded struct {
	ctx      context.Context // the batch's, for what is told of twins
	source   Source
	ignorer  Ignorer // nil: no record is ignored
	decoder  Decoder // nil: records are decoded when they are named
	config   *Config
	groups   batch.Groups
	options  idempotency.Options // the guard's
	records  []batch.Record
	entries  []entry
	wait     time.Duration
	timeout  time.Duration // of a record's handler and its sink
	unusable atomic.Bool

	// How many of the records that were claimed so far were done, of how many.
	claimed, replayed atomic.Int64
}

type entry struct {
	identity Identity
	claim    *idempotency.Claim // held by this batch, nil: none
	waitEnd  time.Time          // when waiting for another's claim ends
	polls    int                // how often that was looked at
}

func (g *guarded) Prepare(ctx context.Context, i int) (string, error) {
	identity, err := g.source.Prepare(i)
	if err != nil {
		return "", err
	}
	if g.ignored(i) || g.options.Disabled {
		return "", nil // it needs no key
	}
	if identity.Key == "" && g.options.MissingKey != idempotency.MissingKeyRunsUnprotected {
		_, err := g.config.Guard.Claim(ctx, idempotency.Request{}) // which is ErrKeyMissing, and tells the hooks of it
		return "", err
	}
	g.entries[i].identity = identity
	return identity.Key, nil
}

func (g *guarded) ignored(i int) bool { return g.ignorer != nil && g.ignorer.Ignored(i) }

// Twin compares fingerprints: the same key with another payload is no twin, and will not become one.
func (g *guarded) Twin(leader, follower int) error {
	a, b := &g.entries[leader].identity, &g.entries[follower].identity
	if a.Fingerprint == b.Fingerprint {
		return nil
	}
	// Not the key itself, which may be personal data: see idempotency.Options.HashKeys.
	err := fmt.Errorf("%w, that of record %q in the same batch", idempotency.ErrFingerprintMismatch, g.records[leader].ID)
	g.config.Guard.TellMismatch(g.ctx,
		idempotency.Request{Key: b.Key, Fingerprint: b.Fingerprint, Attempt: g.records[follower].Attempt}, err)
	if a.Fingerprint == "" || b.Fingerprint == "" {
		return err // it comes back, and is judged by what the leader leaves in the store
	}
	return batch.Permanent(err)
}

func (g *guarded) Groups() batch.Groups { return g.groups }

func (g *guarded) Admit(ctx context.Context, records []int, admissions []batch.Admission) {
	if len(records) == 1 && g.entries[records[0]].claim == nil {
		g.admitOne(ctx, records[0], &admissions[0])
		return
	}
	var requests []idempotency.Request
	var claimed, renewed []int // places in records
	for k, i := range records {
		switch {
		case g.unclaimed(i, &admissions[k]):
		case g.entries[i].claim != nil:
			renewed = append(renewed, k)
		default:
			if requests == nil {
				requests, claimed = make([]idempotency.Request, 0, len(records)), make([]int, 0, len(records))
			}
			requests, claimed = append(requests, g.request(i)), append(claimed, k)
		}
	}
	claims, errs := g.config.Guard.ClaimAll(ctx, requests)
	for j, k := range claimed {
		admissions[k] = g.admission(ctx, records[k], claims[j], errs[j])
	}
	if len(renewed) > 0 {
		g.renew(ctx, records, renewed, admissions)
	}
}

func (g *guarded) admitOne(ctx context.Context, i int, a *batch.Admission) {
	if !g.unclaimed(i, a) {
		claim, err := g.config.Guard.Claim(ctx, g.request(i))
		*a = g.admission(ctx, i, claim, err)
	}
}

// unclaimed reports whether the record needs no claim, or can have none, and says so in a.
func (g *guarded) unclaimed(i int, a *batch.Admission) bool {
	switch {
	case g.ignored(i):
		a.Outcome = batch.Ignored
	case g.unusable.Load(): // the batch stops, but not before the record that found out has ended
		a.Outcome, a.Err = batch.Skipped, errors.Join(batch.ErrOrder, idempotency.ErrStoreUnusable)
	default:
		return false
	}
	return true
}

func (g *guarded) request(i int) idempotency.Request {
	e := &g.entries[i]
	return idempotency.Request{
		Key: e.identity.Key, Fingerprint: e.identity.Fingerprint, Expiry: g.config.Expiry,
		Timeout: g.timeout, Attempt: g.records[i].Attempt, Poll: e.polls, AskFirst: g.likelyDone(),
	}
}

// likelyDone reports whether the batch is a segment that is delivered again, as far as that can be told by now: of a
// source that redelivers segments, where half of what was claimed so far was done.
func (g *guarded) likelyDone() bool {
	const enough = 8
	claimed := g.claimed.Load()
	return g.config.Redelivers && claimed >= enough && 2*g.replayed.Load() >= claimed
}

// admission says what becomes of a record by what became of its claim.
func (g *guarded) admission(ctx context.Context, i int, claim *idempotency.Claim, err error) batch.Admission {
	e := &g.entries[i]
	g.claimed.Add(1)
	if err != nil {
		return g.refused(ctx, e, err)
	}
	if claim.Replayed() {
		g.replayed.Add(1)
		return batch.Admission{Outcome: batch.Replayed}
	}
	e.claim = claim
	a := g.mayRun(ctx, claim)
	a.Context = claim.Context(ctx)
	return a
}

// mayRun is the admission of a record that holds claim.
func (g *guarded) mayRun(ctx context.Context, claim *idempotency.Claim) batch.Admission {
	a := batch.Admission{
		Context: ctx, Attempt: claim.Attempt(), Deadline: claim.Deadline(), Cause: idempotency.ErrLeaseEnding, StartBy: claim.StartBy(),
	}
	if g.config.Batch.DeadLetter != nil {
		// The sink works inside the claim, and leaves half of what is left after the handler to complete or release it in.
		a.End = a.Deadline.Add(claim.End().Sub(a.Deadline) / 2)
	}
	if cut, ok := ctx.Deadline(); ok && cut.Before(claim.End()) {
		a.Deadline = time.Time{} // the batch cuts its handlers off before the lease ends: no context a record
	}
	return a
}

// renew renews the claims of records that waited for a worker for so long that their leases have become too short.
func (g *guarded) renew(ctx context.Context, records, places []int, admissions []batch.Admission) {
	claims := make([]*idempotency.Claim, len(places))
	for j, k := range places {
		claims[j] = g.entries[records[k]].claim
	}
	for j, err := range g.config.Guard.RenewAll(ctx, claims) {
		k := places[j]
		e := &g.entries[records[k]]
		if err == nil {
			admissions[k] = g.mayRun(ctx, e.claim)
			admissions[k].Context = e.claim.Context(ctx)
			continue
		}
		e.claim = nil
		admissions[k] = g.refused(ctx, e, err)
		if errors.Is(err, idempotency.ErrClaimLost) && ctx.Err() == nil {
			// Another worker has it. What became of that is for a new claim to tell.
			admissions[k].RetryAt = time.Now()
		}
	}
}

func (g *guarded) Begin(i int) error {
	if g.decoder == nil {
		return nil
	}
	return g.decoder.Decode(i)
}

// refused says what becomes of a record whose key could not be claimed.
func (g *guarded) refused(ctx context.Context, e *entry, err error) batch.Admission {
	if held, ok := errors.AsType[*idempotency.InProgressError](err); ok {
		return g.heldElsewhere(e, held, err)
	}
	switch {
	case errors.Is(err, idempotency.ErrFingerprintMismatch):
		return batch.Admission{Outcome: batch.Failed, Err: batch.Permanent(err)}
	case errors.Is(err, idempotency.ErrLeaseTooShort), ctx.Err() != nil:
		return batch.Admission{Outcome: batch.Skipped, Err: errors.Join(batch.ErrDeadlineNear, err)}
	case errors.Is(err, idempotency.ErrStoreUnusable):
		// No record of this batch can be claimed. One of them says so, and the rest is not tried.
		if g.unusable.CompareAndSwap(false, true) {
			return batch.Admission{Outcome: batch.Failed, Err: err, Stop: true}
		}
		return batch.Admission{Outcome: batch.Skipped, Err: errors.Join(batch.ErrOrder, err)}
	default:
		return batch.Admission{Outcome: batch.Failed, Err: err}
	}
}

func (g *guarded) drops() bool { return g.options.HeldElsewhere == idempotency.HeldElsewhereDrops }

// heldElsewhere lets the record wait, without a worker, gives it back to the source, or drops it. A record that still waits
// when the batch ends is not dropped.
func (g *guarded) heldElsewhere(e *entry, held *idempotency.InProgressError, err error) batch.Admission {
	a := batch.Admission{Outcome: batch.InProgress, Err: err}
	if e.polls == 0 {
		e.waitEnd = time.Now().Add(g.wait)
	}
	if delay := held.RetryIn(e.polls, time.Until(e.waitEnd)); delay > 0 {
		e.polls++
		a.RetryAt = time.Now().Add(delay)
	} else if g.drops() {
		return batch.Admission{Outcome: batch.Ignored}
	}
	return a
}

func (g *guarded) Run(ctx context.Context, i int) error {
	claim := g.entries[i].claim
	if claim == nil {
		return g.source.Handle(ctx, i)
	}
	return claim.Run(func() error { return g.source.Handle(ctx, i) })
}

func (g *guarded) Settle(ctx context.Context, records []int, settlements []batch.Settlement) {
	if end, ok := ctx.Deadline(); !ok || ctx.Err() != nil || time.Until(end) < 2*time.Second {
		// A straggler, or one that finishes in the batch's last moments: it gets the time that a completion takes.
		detached, cancel := idempotency.Detach(ctx)
		defer cancel()
		ctx = detached
	}
	if len(records) == 1 {
		if e := &g.entries[records[0]]; e.claim != nil {
			ending := g.ending(e, &settlements[0])
			g.settled(&settlements[0], ending, g.settleOne(ctx, e.claim, ending))
		}
		return
	}
	claims := make([]*idempotency.Claim, 0, len(records))
	endings := make([]idempotency.Ending, 0, len(records))
	places := make([]int, 0, len(records))
	for k, i := range records {
		if e := &g.entries[i]; e.claim != nil {
			claims, endings, places = append(claims, e.claim), append(endings, g.ending(e, &settlements[k])), append(places, k)
		}
	}
	if len(claims) == 0 {
		return
	}
	for j, err := range g.config.Guard.SettleAll(ctx, claims, endings) {
		g.settled(&settlements[places[j]], endings[j], err)
	}
}

// ending is how the record's claim ends.
func (g *guarded) ending(e *entry, s *batch.Settlement) idempotency.Ending {
	switch {
	case s.Outcome == batch.Succeeded:
		return idempotency.EndComplete
	case s.Outcome == batch.DeadLettered && e.identity.Own:
		return idempotency.EndGivenUp
	case s.Outcome == batch.DeadLettered:
		return idempotency.EndGivenUpFree // a business key must be free again, for the redrive from the dead-letter queue
	case s.Outcome == batch.Skipped:
		return idempotency.EndUnstarted
	default:
		return idempotency.EndRelease
	}
}

func (g *guarded) settleOne(ctx context.Context, claim *idempotency.Claim, ending idempotency.Ending) error {
	switch ending {
	case idempotency.EndComplete:
		return claim.Complete(ctx, nil)
	case idempotency.EndGivenUp, idempotency.EndGivenUpFree:
		return claim.GiveUp(ctx, ending == idempotency.EndGivenUp)
	case idempotency.EndUnstarted:
		return claim.ReleaseUnstarted(ctx)
	default:
		return claim.Release(ctx)
	}
}

// settled says what becomes of a record by what became of its claim's ending.
func (g *guarded) settled(s *batch.Settlement, ending idempotency.Ending, err error) {
	switch {
	case ending == idempotency.EndComplete || ending == idempotency.EndGivenUp:
		*s = g.completed(err, *s)
	case err != nil:
		s.Err = errors.Join(s.Err, err) // the handler's error first
	}
}

// completed judges what the completion of a record returned. Work that is done and whose completion is not stored counts
// as done, since telling it as failed would repeat it for certain. A lost claim does not: another worker is, or was, at
// the same work. Neither does a transaction that is not known to have been applied: none of the work is done, perhaps.
func (g *guarded) completed(err error, s batch.Settlement) batch.Settlement {
	switch {
	case err == nil:
		return s
	case s.Outcome == batch.Succeeded && comesBack(err):
		return batch.Settlement{Outcome: batch.Failed, Err: err}
	case g.options.FailUnrecorded && s.Outcome == batch.Succeeded:
		return batch.Settlement{Outcome: batch.Failed, Err: err}
	default:
		s.Err, s.Unrecorded = errors.Join(s.Err, err), true
		return s
	}
}

func comesBack(err error) bool {
	return errors.Is(err, idempotency.ErrClaimLost) || errors.Is(err, idempotency.ErrTransactionCancelled) ||
		errors.Is(err, idempotency.ErrTransactionUndecided)
}
