package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// Tumbling is what the invocations of one handler of tumbling windows have in common.
type Tumbling[S any] struct {
	Config *Config // without a guard: records are folded again after a retry, never skipped
	Guard  *idempotency.Guard
	Life   time.Duration // of the key of a window's end
	// StreamARN returns the stream's ARN of the event's. Nil means that this is it.
	StreamARN func(arn string) string
	// End returns the value of the record that stands for the window's end, and what is to be done then.
	End func(v *Invocation, state S) (value any, finish func(context.Context) error)
}

// Run folds the records into the window's state, finishes the window if it ends, and returns the answer.
func (t *Tumbling[S]) Run(ctx context.Context, m *Members, engine []batch.Record, records Folded[S], shards *Shards) ([]byte, error) {
	v, err := m.Invocation()
	if err != nil {
		return nil, t.Config.error(err)
	}
	if t.StreamARN != nil {
		v.ARN = t.StreamARN(v.ARN)
	}
	f, err := newFold(records, v.state)
	if err != nil {
		return nil, t.Config.error(err)
	}
	report := t.Config.Report(ctx, engine, f)
	failed, err := t.Config.answer(report, f, shards)
	if err != nil {
		return nil, t.Config.error(err)
	}
	state, first, err := f.close(ctx, report)
	if errors.Is(err, errNotAgain) {
		if t.Config.pipeline.Batch.ErrorOn == batch.ErrorOnAnyFailure {
			return nil, t.Config.error(err)
		}
		failed, err = t.Config.checkpoint(first, engine[first].ID, err, f, shards)
	}
	if err != nil {
		return nil, t.Config.error(err)
	}
	ends := v.Final && first < 0
	text, err := encodeState(state, !ends)
	if err != nil {
		return nil, t.Config.error(err)
	}
	if ends {
		if err := t.finish(ctx, v, state, engine); err != nil {
			return nil, t.Config.error(err)
		}
	}
	answer := append([]byte(`{"state":`), text...)
	answer = envelope.AppendFailures(append(answer, ','), failed)
	return append(answer, '}'), nil
}

// finish finishes the window, as a batch of its own with one record. It fails as a whole: an answer could name no record.
func (t *Tumbling[S]) finish(ctx context.Context, v *Invocation, state S, engine []batch.Record) error {
	value, finish := t.End(v, state)
	last := &end{invocation: v, finish: finish}
	if n := len(engine); n > 0 {
		last.record = engine[n-1].ID
	}
	record := batch.Record{ID: v.name(), Source: v.ARN, Value: value}
	config := pipeline.Config{Batch: t.Config.pipeline.Batch, Guard: t.Guard, Expiry: t.Life, Wait: wait}
	report := pipeline.Run(ctx, []batch.Record{record}, last, &config)
	if err := report.Err(batch.ErrorOnAnyFailure); err != nil {
		return fmt.Errorf("window could not be finished, so the whole batch has to come back: %w", err)
	}
	return nil
}

// name names the window, for logs and as the middle of its key.
func (v *Invocation) name() string {
	return idempotency.JoinKey(v.ShardID, v.Start.UTC().Format(time.RFC3339Nano), v.End.UTC().Format(time.RFC3339Nano))
}

// end is the end of a window: a pipeline.Source of one record.
type end struct {
	invocation *Invocation
	record     string // the last one of the invocation, if it has any
	finish     func(context.Context) error
}

// Prepare names the end by stream, shard and window. A window that Lambda ends early, since its state has become too
// large, goes on with an empty state and ends again; those ends are told apart by their last record, or, where they come
// without records, by the state that they bring.
func (e *end) Prepare(int) (pipeline.Identity, error) {
	v := e.invocation
	key := idempotency.JoinKey("window", v.ARN, v.name())
	if v.TerminatedEarly {
		place := e.record
		if place == "" {
			place = fingerprint(v.state)
		}
		key = idempotency.JoinKey(key, "early", place)
	}
	return pipeline.Identity{Key: key, Own: true}, nil
}

func (e *end) Handle(ctx context.Context, _ int) error { return e.finish(ctx) }
