package kinesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/internal/pipeline"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// Window is a tumbling window at its end.
type Window[S any] struct {
	// State is what all records of the window were folded into, or, if the window was terminated early, those since the
	// last time.
	State S
	// Start and End are the window's. Records belong to it by the time of their arrival, End excluded.
	Start, End time.Time
	ShardID    string
	StreamARN  string
	// TerminatedEarly is whether Lambda ended the window before its time, because its state was larger than 1 MB. The
	// rest of it comes as a window of its own, with the same times.
	TerminatedEarly bool
}

// JSON returns the window as JSON, or "" if its state cannot be encoded.
func (w *Window[S]) JSON() string {
	text, err := json.Marshal(w)
	if err != nil {
		return ""
	}
	return string(text)
}

// WindowHandler handles the batches of a mapping with tumbling windows. It is a lambda.Handler, to be started with
// lambda.Start(handler). It is safe for concurrent use and holds no state of an invocation.
type WindowHandler[T, S any] struct {
	options  Options
	decoder  decoder[T]
	naming   *stream.Naming[*Record[T]]
	fold     func(context.Context, S, *Record[T]) (S, error)
	tumbling stream.Tumbling[S]
}

// NewWindowHandler returns a handler that calls fold for each record of a window, strictly one after the other, with the
// state so far, and finish with the state when the window has ended.
//
// Between invocations Lambda keeps the state, as JSON by the rules of encoding/json. An S is therefore a struct, a map, or
// another type whose JSON is an object; at the window's beginning it is what {} decodes to. More than 1 MB of it is an
// error.
//
// Folding stops at the first record for which fold returns an error. The answer names that record, and its state
// has exactly the records before it. They were folded once, or more often: records are folded again after a retry, and
// after a failure that may have left its mark on the state. So fold must do nothing but return the new state; when it
// folds a record again, it may do so outside of the middleware. Options.Idempotency does not guard it: a record that is
// skipped since it is done would be missing in the state, or counted twice, as a function cannot tell whether its last
// answer arrived.
//
// Nobody counts the attempts of these records. DeadLetter gets those that fail with a batch.Permanent error and those that
// cannot be decoded, and they are not part of the state. Any other failure holds up the shard until the mapping's retries
// run out.
//
// finish is guarded by Options.Idempotency, by stream, shard and window, and is called for a window without records too,
// and for one that Lambda terminated early; two early ends of a window without records, and with equal states, pass for
// one. If it returns an error the whole invocation fails and comes back. It runs as a batch of its own: middleware, hooks
// and DeadLetter see a record whose Value is the *Window[S].
//
// Windows belong to a shard: a shard that was split ends them, and its children begin new ones. The error names each
// option that is out of its limits, and those that a window has no use for: Key, KeyOf, Fingerprint, and a Concurrency above
// 1.
func NewWindowHandler[T, S any](
	fold func(ctx context.Context, state S, r *Record[T]) (S, error),
	finish func(ctx context.Context, w *Window[S]) error,
	optFns ...func(*Options),
) (*WindowHandler[T, S], error) {
	if fold == nil || finish == nil {
		return nil, errors.New("kinesis: fold or finish is nil, want two functions")
	}
	h := &WindowHandler[T, S]{options: pipeline.Apply(optFns), fold: fold}
	if err := errors.Join(h.options.validate(true), stream.ValidateState[S]("kinesis")); err != nil {
		return nil, err
	}
	h.decoder = newDecoder[T](&h.options)
	h.naming = &stream.Naming[*Record[T]]{
		Batch: &h.options.Options, Decode: h.decoder.decode, DecodeMayRecover: h.options.Decode != nil,
	}
	h.tumbling = stream.Tumbling[S]{
		Config: stream.NewConfig("kinesis", &h.options.Options, nil, 0, stream.Order{Serial: true}),
		Guard:  h.options.Idempotency, Life: keyLife, StreamARN: streamARN,
		End: func(v *stream.Invocation, state S) (any, func(context.Context) error) {
			w := &Window[S]{state, v.Start, v.End, v.ShardID, v.ARN, v.TerminatedEarly}
			return w, func(ctx context.Context) error { return finish(ctx, w) }
		},
	}
	return h, nil
}

// Invoke handles the event of a window and returns the partial batch response with the state, both as JSON. It keeps
// nothing of the payload.
//
// It returns an error, and so makes the whole batch come back, if the payload is no event of a window, if the state is
// missing or cannot be decoded, if finish fails, and where Handler.Invoke does.
func (h *WindowHandler[T, S]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	e, err := parse(payload, &h.options)
	if err != nil {
		return nil, fmt.Errorf("kinesis: %w", err)
	}
	b := &folded[T, S]{segment: segment[T]{event: e, naming: h.naming}, handler: h}
	return h.tumbling.Run(ctx, &e.Window, b.engineRecords(h.tumbling.Config), b, &e.Shards)
}

// Handle is Invoke with the types of aws-lambda-go, for tests. Those have a state of text only, and another one is an error.
// Do not give it to lambda.Start.
func (h *WindowHandler[T, S]) Handle(
	ctx context.Context, event events.KinesisTimeWindowEvent,
) (response events.KinesisTimeWindowEventResponse, err error) {
	payload, err := json.Marshal(event)
	if err != nil {
		return response, fmt.Errorf("kinesis: event: %w", err)
	}
	answer, err := h.Invoke(ctx, payload)
	if err != nil {
		return response, err
	}
	if err := json.Unmarshal(answer, &response); err != nil {
		return response, fmt.Errorf("kinesis: answer does not fit aws-lambda-go's type, use Invoke: %w", err)
	}
	return response, nil
}

// folded are the records of a window's event: a stream.Folded.
type folded[T, S any] struct {
	segment[T]
	handler *WindowHandler[T, S]
}

// Fold calls the user's function.
func (b *folded[T, S]) Fold(ctx context.Context, state S, i int, again bool) (S, error) {
	v := &b.values[i]
	if again {
		v = &Record[T]{View: v.View}
		if err := b.handler.decoder.decode(v); err != nil {
			return state, err
		}
	}
	return b.handler.fold(ctx, state, v)
}
