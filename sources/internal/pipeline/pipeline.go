// Package pipeline joins the engine of package batch with the guard of package idempotency: decode, guard, user's
// function, outcome. It is the only package that knows both. Sources say what their records are.
package pipeline

import (
	"cmp"
	"context"
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
	// Decode decodes the record, once it is known that it is going to be handled. It returns what is wrong with it, also
	// what was found before: the record fails with that, and neither middleware nor Handle is called.
	Decode(i int) error
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
	// Redelivers is whether the source delivers segments again most of whose records are done, so that it pays to ask for
	// those that are before claiming the others.
	Redelivers bool
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
	g.decoder, _ = source.(Decoder)
	if sizes, ok := config.Guard.BulkSizes(); ok && !oneAtATime(records) {
		g.groups = batch.Groups{Admit: sizes.Claims, Settle: sizes.Settle}
	}
	g.wait = cmp.Or(g.options.Wait, config.Wait)
	if g.drops() && g.options.Wait == 0 {
		g.wait = -1
	}
	if timeout := config.Batch.Timeout; timeout > 0 {
		more := claimTime
		if config.Batch.DeadLetter != nil {
			more = sinkTime
		}
		g.timeout = max(timeout, timeout+more) // unless there is no such number
	}
	return batch.RunStages(ctx, records, g, config.Batch)
}

// oneAtATime reports whether no two of the records can be under way at once, so that groups would be of one record.
func oneAtATime(records []batch.Record) bool {
	for i := 1; i < len(records); i++ {
		if lane := records[i].Lane; lane == "" || lane != records[0].Lane {
			return false
		}
	}
	return true
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

func (p *plain) Admit(_ context.Context, records []int, admissions []batch.Admission) {
	for k, i := range records {
		if p.ignorer != nil && p.ignorer.Ignored(i) {
			admissions[k].Outcome = batch.Ignored
		} else if f, ok := p.source.(Finished); ok && f.Done(i) {
			admissions[k].Outcome = batch.Replayed
		}
	}
}

func (p *plain) Twin(int, int) error                               { return nil }
func (p *plain) Groups() batch.Groups                              { return batch.Groups{} }
func (p *plain) Begin(int) error                                   { return nil }
func (p *plain) Run(ctx context.Context, i int) error              { return p.source.Handle(ctx, i) }
func (p *plain) Settle(context.Context, []int, []batch.Settlement) {}
