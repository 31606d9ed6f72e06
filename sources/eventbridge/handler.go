package eventbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// wait is for how long an event waits for a claim that is held elsewhere: as long as there is time. Of three attempts that
// Lambda makes, the last is three minutes after the first, and one that gives up early is gone.
const wait = 24 * time.Hour

// Handler handles the events that EventBridge delivers. It is a lambda.Handler, to be started with lambda.Start(handler). It
// is safe for concurrent use and holds no state of an invocation.
type Handler[T any] struct {
	fn       func(context.Context, *Event[T]) error
	options  Options
	naming   *stream.Naming[*Event[T]]
	pipeline pipeline.Config
	age      *pipeline.AgeWarning
}

// NewHandler returns a Handler that calls fn for each event. What fn returns decides about the event: nil means that it is
// done, an error that the invocation fails, and all that is not done comes back; see batch.Handler for more.
//
// The error names each option that is out of its limits.
func NewHandler[T any](fn func(ctx context.Context, e *Event[T]) error, optFns ...func(*Options)) (*Handler[T], error) {
	if fn == nil {
		return nil, errors.New("eventbridge: handler function is nil, want a function")
	}
	h := &Handler[T]{fn: fn, options: pipeline.Apply(optFns), age: pipeline.NewAgeWarning(0)}
	naming, err := newNaming[T](&h.options)
	if err := errors.Join(h.options.validate(), err); err != nil {
		return nil, err
	}
	h.naming = naming
	guard := h.options.Idempotency
	if guard != nil {
		life := keyLife
		if expiry := guard.Options().Expiry; expiry > 0 {
			life = expiry
		}
		h.age = pipeline.NewAgeWarning(life)
	}
	h.pipeline = pipeline.Config{Batch: &h.options.Options, Guard: guard, Expiry: keyLife, Wait: wait}
	return h, nil
}

// Invoke handles an event, or an array of events, and answers with null. It keeps nothing of the payload.
//
// All events are finished, whichever fails. If one is not done then, Invoke returns a *batch.FailedError, which says how many
// and why the first, and all of them come back. It also returns an error if the payload is no JSON, or an empty array.
func (h *Handler[T]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	events, err := parse(payload)
	if err != nil {
		return nil, fmt.Errorf("eventbridge: %w", err)
	}
	d := &delivery[T]{handler: h, events: events}
	report := pipeline.Run(ctx, d.engineRecords(), d, &h.pipeline)
	if err := report.Err(batch.ErrorOnAnyFailure); err != nil {
		return nil, err
	}
	return []byte("null"), nil
}

// Handle is Invoke with the type of aws-lambda-go, for tests. Do not give it to lambda.Start: the runtime would decode the
// event first, and reject one whose time is malformed, an array, and data without an envelope.
func (h *Handler[T]) Handle(ctx context.Context, event events.EventBridgeEvent) error {
	payload, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("eventbridge: event: %w", err)
	}
	_, err = h.Invoke(ctx, payload)
	return err
}
