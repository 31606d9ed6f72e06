package kinesis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// Watermark remembers how far a consumer has come in each shard, see AssumeParallelizationFactorOne.
type Watermark struct {
	consumer string
	store    watermark.Store
	options  WatermarkOptions
}

// WatermarkOptions are the options of a Watermark. The zero value is a good default.
type WatermarkOptions struct {
	// Retention is how long the stream keeps records, and so how long the position in a shard that gets no more records
	// must be remembered. 0 means 8 days. The limit is 366 days.
	Retention time.Duration
	// Skew is how far the clocks of two workers may differ: a shard is taken over when the lease of who had it ended longer
	// ago than that. 0 means idempotency.DefaultSkew. Negative means none.
	Skew time.Duration
}

// maxRetention is a day longer than a stream can keep records
// (https://docs.aws.amazon.com/streams/latest/dev/kinesis-extended-retention.html).
const maxRetention = 366 * 24 * time.Hour

// AssumeParallelizationFactorOne makes a Watermark for Options.Watermark: one item in store for the consumer and each
// shard, in place of one for each record, at about a hundredth of the price. Records at or before the position in it are
// skipped, and those behind it run strictly one at a time, up to the first failure.
//
// It assumes that the mapping's ParallelizationFactor is 1, and loses records where it is not: several batches of a shard
// are in progress then, and what ends first moves the position past records of the others. A function cannot see
// the factor. Package watermark says more.
//
// The store in DynamoDB is dynamostore.NewWatermarks, on the table of a guard:
//
//	o.Watermark = kinesis.AssumeParallelizationFactorOne("journeys", dynamostore.NewWatermarks(client, "idempotency"))
//
// The position is stored at the end of a batch, so a crash repeats what the batch has done until then. With a guard only
// the records in flight are repeated.
//
// Nobody counts attempts, so MaxAttempts cannot be used. DeadLetter gets the records that fail with a batch.Permanent error
// and those that cannot be decoded.
//
// The consumer's name is part of the item's key. Two functions that read the same stream need different names.
//
//snippet:go import "github.com/aws/aws-sdk-go-v2/service/dynamodb"
//snippet:go var o kinesis.Options
//snippet:go var client *dynamodb.Client
func AssumeParallelizationFactorOne(consumer string, store watermark.Store, optFns ...func(*WatermarkOptions)) *Watermark {
	w := &Watermark{consumer: consumer, store: store}
	for _, f := range optFns {
		if f != nil {
			f(&w.options)
		}
	}
	return w
}

// validate returns what is wrong with the watermark in a handler of the options.
func (w *Watermark) validate(o *Options) error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("kinesis: "+format, args...))
		}
	}
	check(w.consumer != "", "consumer of the watermark is empty, want a name")
	check(w.store != nil, "store of the watermark is nil, want a watermark.Store")
	check(w.options.Retention == 0 || (w.options.Retention >= time.Hour && w.options.Retention <= maxRetention),
		"WatermarkOptions.Retention is %v, want 0 (for %v) or 1h to %v", w.options.Retention, keyLife, maxRetention)
	check(o.Idempotency == nil, "both Options.Watermark and Options.Idempotency are set, want one")
	check(o.Concurrency <= 1, "Options.Concurrency is %d, want 0 or 1 with Options.Watermark: a shard is serial", o.Concurrency)
	if v, ok := w.store.(idempotency.Validator); ok {
		errs = append(errs, v.Validate())
	}
	return errors.Join(errs...)
}

// reached is the position of a watermark.
type reached struct{ position watermark.Position }

func (r *reached) past(rec *record) bool {
	p := rec.position()
	return p.Valid() == nil && p.Compare(r.position) <= 0
}

// position is where the record stands in its shard. A whole record stands behind the parts it would have as an aggregate,
// so that switching to or from KeepAggregates repeats an aggregate, and skips nothing.
func (r *record) position() watermark.Position {
	if r.sub == whole {
		return watermark.Position{Sequence: r.sequence, Sub: watermark.Whole}
	}
	return watermark.Position{Sequence: r.sequence, Sub: r.sub}
}

// tenure is the time in which one invocation has a shard.
type tenure struct {
	*Watermark
	key, owner string
	lease      time.Time
	skew       time.Duration
}

// runFromWatermark runs the records behind the watermark, and moves it on.
func (h *Handler[T]) runFromWatermark(ctx context.Context, engine []batch.Record, b *segment[T]) ([]string, error) {
	if len(b.Records) == 0 {
		return nil, nil
	}
	if err := b.ascending(); err != nil {
		return nil, err
	}
	t, err := h.options.Watermark.newTenure(ctx, &b.Shards)
	if err != nil {
		return nil, err
	}
	position, err := t.claim(ctx)
	if err != nil {
		return nil, fmt.Errorf("kinesis: no record ran, since the shard's watermark could not be claimed: %w", err)
	}
	b.reached = &reached{position}
	limited, cancel := context.WithDeadline(ctx, t.lease)
	defer cancel()
	report := h.stream.Report(limited, engine, b)

	// What is done is done, but not remembered: it runs again if it is delivered again. To tell it as failed would repeat
	// it for certain. A shard that another has taken is different: it is at the same records, or was told to run them.
	//
	// A handler that still runs keeps the shard until the lease ends, as it would its claim with a guard.
	err = t.advance(ctx, b.lastDone(stream.FirstFailed(report)), report.Count(batch.Abandoned) == 0)
	switch {
	case errors.Is(err, idempotency.ErrClaimLost):
		return nil, fmt.Errorf("kinesis: shard was taken over while its records ran, so the whole batch has to come back: %w", err)
	case err != nil:
		pipeline.Warn(h.options.Logger, "position in the shard was not stored, so a redelivery may run again",
			"watermark", t.key, "error", err)
	}
	if h.panicOnAbandoned && report.Count(batch.Abandoned) > 0 {
		panic(report.Err(batch.ErrorOnAnyFailure)) // as the engine would, but not before the position is stored
	}
	return h.stream.Answer(report, b, &b.Shards)
}

// newTenure names the shard and the lease.
func (w *Watermark) newTenure(ctx context.Context, shards *stream.Shards) (*tenure, error) {
	shard, err := shards.One()
	if err == nil && (shard.Stream == "" || shard.ID == "") {
		err = fmt.Errorf("event is of %v, want a stream and a shard", shard)
	}
	if err != nil {
		return nil, fmt.Errorf("kinesis: %w, since a watermark is a place in a shard", err)
	}
	now := time.Now()
	lease, limited := ctx.Deadline()
	if !limited {
		lease = now.Add(idempotency.DefaultLease)
	}
	t := &tenure{
		Watermark: w, key: watermark.Key(w.consumer, shard.Stream, shard.ID),
		lease: lease.Truncate(time.Millisecond), skew: idempotency.DefaultSkew,
	}
	if w.options.Skew != 0 {
		t.skew = max(w.options.Skew, 0)
	}
	if !t.lease.After(now.Add(time.Millisecond)) {
		return nil, fmt.Errorf("kinesis: no record ran: %w", batch.ErrDeadlineNear)
	}
	return t, nil
}

func (t *tenure) expiry(now time.Time) time.Time {
	life := t.options.Retention
	if life == 0 {
		life = keyLife
	}
	return now.Add(life + t.skew + time.Second)
}

// claim waits for the shard as long as there is time: its records come back at once, so that giving up gains nothing.
func (t *tenure) claim(ctx context.Context) (watermark.Position, error) {
	for poll := 0; ; poll++ {
		now := time.Now()
		t.owner = rand.Text() // a late duplicate of a request that was refused must not pass for the next one
		position, err := t.store.Claim(ctx, watermark.ClaimRequest{
			Key: t.key, Owner: t.owner, Now: now, Lease: t.lease, Skew: t.skew, Expiry: t.expiry(t.lease),
		})
		held, ok := errors.AsType[*idempotency.InProgressError](err)
		if !ok {
			if err != nil {
				t.giveBack(ctx) // it is open whether it was claimed
			}
			return position, err
		}
		// A second is left for the records, or for nothing.
		delay := held.RetryIn(poll, time.Until(t.lease)-time.Second)
		if delay == 0 || !sleep(ctx, delay) {
			return position, err
		}
	}
}

// giveBack releases a claim that may have been made. The lease ends it in any case.
func (t *tenure) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	now := time.Now()
	_ = t.store.Advance(ctx, watermark.AdvanceRequest{Key: t.key, Owner: t.owner, Now: now, Expiry: t.expiry(now), Release: true})
}

// advance moves the position on, and gives the shard back where release says so. It is tried three times, within a fraction
// of a second: the store's own client has retried by then. It takes no more than half of the time that is left, and five
// seconds where there is no end: an answer that comes too late would repeat the batch for certain.
func (t *tenure) advance(ctx context.Context, to watermark.Position, release bool) error {
	limit := 5 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline) / 2
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var err error
	for try := range 3 {
		if try > 0 && !sleep(ctx, 50*time.Millisecond<<try) {
			break
		}
		now := time.Now()
		err = t.store.Advance(ctx, watermark.AdvanceRequest{
			Key: t.key, Owner: t.owner, Now: now, To: to, Expiry: t.expiry(now), Release: release,
		})
		if err == nil || errors.Is(err, idempotency.ErrClaimLost) || errors.Is(err, idempotency.ErrStoreUnusable) {
			break
		}
	}
	return err
}

// lastDone returns the position of the last record before index failed, or, if that is -1, of all. It is the zero
// position if there is none, or if the watermark was past it already.
func (b *segment[T]) lastDone(failed int) watermark.Position {
	if failed < 0 {
		failed = len(b.Records)
	}
	for i := failed - 1; i >= 0 && !b.Done(i); i-- {
		if p := b.Records[i].position(); p.Valid() == nil {
			return p
		}
	}
	return watermark.Position{}
}

// ascending returns an error if a record stands before the one in front of it, so that moving the position to that one
// would move it past a record that has not run.
func (b *segment[T]) ascending() error {
	var last watermark.Position
	for i := range b.Records {
		p := b.Records[i].position()
		if p.Valid() != nil {
			continue
		}
		if p.Compare(last) < 0 {
			return fmt.Errorf("kinesis: no record ran: event has sequence number %v behind %v, want the shard's order, which "+
				"a watermark relies on", p, last)
		}
		last = p
	}
	return nil
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
