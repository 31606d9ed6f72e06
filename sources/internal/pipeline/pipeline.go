// Package pipeline joins the engine of package batch with the guard of package idempotency: decode, guard, user's
// function, outcome. It is the only package that knows both. Sources say what their records are.
package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
)

// Identity is what the guard must know of a record.
type Identity struct {
	// Key is the record's key. Empty means that it has none.
	Key string
	// Fingerprint is that of its payload. Empty means none.
	Fingerprint string
	// Own is whether the key is the source's own identity of this record, and not a business key, which other records
	// may have too.
	Own bool
}

// Source is the records of one batch. Records are named by their index.
type Source interface {
	// Prepare decodes the record and names it. It is called once, before Handle.
	Prepare(i int) (Identity, error)
	// Handle calls the user's function with it.
	Handle(ctx context.Context, i int) error
}

// Finished is implemented by sources that know by themselves, without a guard, that records are done.
type Finished interface {
	// Done reports whether the record is done, so that it does not run. It is called after Prepare.
	Done(i int) bool
}

// Ignorer is implemented by sources whose platform sends records that need no work.
type Ignorer interface {
	// Ignored reports whether the record is one, so that it is neither claimed nor handled. It is called after Prepare.
	Ignored(i int) bool
}

// Decoder is implemented by sources that can name a record without decoding it.
type Decoder interface {
	// Decode decodes the record, once it is known that it is going to be handled. What is wrong with it is for Handle to
	// return.
	Decode(i int)
}

// Config is what a handler's batches have in common.
type Config struct {
	Batch *batch.Options
	Guard *idempotency.Guard // nil: no idempotency
	// Expiry is how long a key lives where the guard does not say.
	Expiry time.Duration
	// Wait is how long a record waits for a claim that is held elsewhere where the guard does not say. Negative means
	// not at all.
	Wait time.Duration
}

// How much longer than the timeout the work of a record may take by its claim.
const (
	claimTime = time.Second     // for the claim's reply, after which the handler's time begins
	sinkTime  = 5 * time.Second // for the sink as well, after the handler has used up its time
)

// Apply returns options that none of the functions has kept a pointer to. A nil function is skipped.
func Apply[O any](optFns []func(*O)) O {
	var options O
	for _, f := range optFns {
		if f != nil {
			f(&options)
		}
	}
	return options
}

// Run runs a batch.
func Run(ctx context.Context, records []batch.Record, source Source, config *Config) *batch.Report {
	ignorer, _ := source.(Ignorer)
	if config.Guard == nil {
		return batch.RunStages(ctx, records, &plain{source, ignorer}, config.Batch)
	}
	if deadline, ok := ctx.Deadline(); ok {
		ctx = idempotency.WithInvocationDeadline(ctx, deadline)
	}
	g := &guarded{
		ctx: ctx, source: source, ignorer: ignorer, config: config, options: config.Guard.Options(), records: records,
		entries: make([]entry, len(records)),
	}
	g.wait = cmp.Or(g.options.Wait, config.Wait)
	if timeout := config.Batch.Timeout; timeout > 0 {
		more := claimTime
		if config.Batch.DeadLetter != nil {
			more = sinkTime
		}
		g.timeout = max(timeout, timeout+more) // unless there is no such number
	}
	return batch.RunStages(ctx, records, g, config.Batch)
}

// plain is the stages of a source without a guard.
type plain struct {
	source  Source
	ignorer Ignorer // nil: no record is ignored
}

func (p *plain) Prepare(_ context.Context, i int) (string, error) {
	_, err := p.source.Prepare(i)
	return "", err
}

func (p *plain) Admit(_ context.Context, i int) batch.Admission {
	if p.ignorer != nil && p.ignorer.Ignored(i) {
		return batch.Admission{Outcome: batch.Ignored}
	}
	if f, ok := p.source.(Finished); ok && f.Done(i) {
		return batch.Admission{Outcome: batch.Replayed}
	}
	return batch.Admission{}
}

func (p *plain) Twin(int, int) error                                                  { return nil }
func (p *plain) Run(ctx context.Context, i int) error                                 { return p.source.Handle(ctx, i) }
func (p *plain) Settle(_ context.Context, _ int, s batch.Settlement) batch.Settlement { return s }

// guarded is the stages of a source with a guard, for one batch.
type guarded struct {
	ctx      context.Context // the batch's, for what is told of twins
	source   Source
	ignorer  Ignorer // nil: no record is ignored
	config   *Config
	options  idempotency.Options // the guard's
	records  []batch.Record
	entries  []entry
	wait     time.Duration
	timeout  time.Duration // of a record's handler and its sink
	unusable atomic.Bool
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
	if g.ignored(i) {
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

func (g *guarded) Admit(ctx context.Context, i int) batch.Admission {
	if g.ignored(i) {
		return batch.Admission{Outcome: batch.Ignored}
	}
	if g.unusable.Load() { // the batch stops, but not before the record that found out has ended
		return batch.Admission{Outcome: batch.Skipped, Err: errors.Join(batch.ErrOrder, idempotency.ErrStoreUnusable)}
	}
	e, r := &g.entries[i], &g.records[i]
	claim, err := g.config.Guard.Claim(ctx, idempotency.Request{
		Key: e.identity.Key, Fingerprint: e.identity.Fingerprint, Expiry: g.config.Expiry,
		Timeout: g.timeout, Attempt: r.Attempt, Poll: e.polls,
	})
	if err != nil {
		return g.refused(ctx, e, err)
	}
	if claim.Replayed() {
		return batch.Admission{Outcome: batch.Replayed}
	}
	e.claim = claim
	if d, ok := g.source.(Decoder); ok {
		d.Decode(i)
	}
	a := batch.Admission{
		Context: claim.Context(ctx), Attempt: claim.Attempt(), Deadline: claim.Deadline(), Cause: idempotency.ErrLeaseEnding,
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

// heldElsewhere lets the record wait, without a worker, or gives it back to the source.
func (g *guarded) heldElsewhere(e *entry, held *idempotency.InProgressError, err error) batch.Admission {
	a := batch.Admission{Outcome: batch.InProgress, Err: err}
	if e.polls == 0 {
		e.waitEnd = time.Now().Add(g.wait)
	}
	if delay := held.RetryIn(e.polls, time.Until(e.waitEnd)); delay > 0 {
		e.polls++
		a.RetryAt = time.Now().Add(delay)
	}
	return a
}

func (g *guarded) Run(ctx context.Context, i int) error { return g.source.Handle(ctx, i) }

func (g *guarded) Settle(ctx context.Context, i int, s batch.Settlement) batch.Settlement {
	e := &g.entries[i]
	if e.claim == nil {
		return s
	}
	if end, ok := ctx.Deadline(); !ok || ctx.Err() != nil || time.Until(end) < 2*time.Second {
		// A straggler, or one that finishes in the batch's last moments: it gets the time that a completion takes.
		detached, cancel := idempotency.Detach(ctx)
		defer cancel()
		ctx = detached
	}
	var err error
	switch {
	case s.Outcome == batch.Succeeded:
		return g.completed(e.claim.Complete(ctx, nil), s)
	case s.Outcome == batch.DeadLettered && e.identity.Own:
		return g.completed(e.claim.GiveUp(ctx, true), s)
	case s.Outcome == batch.DeadLettered:
		err = e.claim.GiveUp(ctx, false) // a business key must be free again, for the redrive from the dead-letter queue
	case s.Outcome == batch.Skipped:
		err = e.claim.ReleaseUnstarted(ctx)
	default:
		err = e.claim.Release(ctx)
	}
	if err != nil {
		s.Err = errors.Join(s.Err, err) // the handler's error first
	}
	return s
}

// completed judges what the completion of a record returned. Work that is done and whose completion is not stored counts
// as done, since telling it as failed would repeat it for certain. A lost claim does not: another worker is, or was, at
// the same work.
func (g *guarded) completed(err error, s batch.Settlement) batch.Settlement {
	switch {
	case err == nil:
		return s
	case errors.Is(err, idempotency.ErrClaimLost) && s.Outcome == batch.Succeeded:
		return batch.Settlement{Outcome: batch.Failed, Err: err}
	case g.options.FailUnrecorded && s.Outcome == batch.Succeeded:
		return batch.Settlement{Outcome: batch.Failed, Err: err}
	default:
		s.Err, s.Unrecorded = errors.Join(s.Err, err), true
		return s
	}
}
