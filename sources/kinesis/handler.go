package kinesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// Handler handles the batches of a stream's shards. It is a lambda.Handler, to be started with lambda.Start(handler). It
// is safe for concurrent use and holds no state of an invocation.
type Handler[T any] struct {
	fn      func(context.Context, *Record[T]) error
	options Options
	naming  *stream.Naming[*Record[T]]
	stream  *stream.Config

	panicOnAbandoned bool // where it is not for the engine to do
}

// NewHandler returns a Handler that calls fn for each record. What fn returns decides about the record: nil means that it
// is done, an error that it comes back, and everything behind it with it; see batch.Handler for more.
//
// The error names each option that is out of its limits.
func NewHandler[T any](fn func(ctx context.Context, r *Record[T]) error, optFns ...func(*Options)) (*Handler[T], error) {
	if fn == nil {
		return nil, errors.New("kinesis: handler function is nil, want a function")
	}
	h := &Handler[T]{fn: fn, options: pipeline.Apply(optFns)}
	naming, err := newNaming[T](&h.options)
	if err := errors.Join(h.options.validate(false), err); err != nil {
		return nil, err
	}
	h.naming = naming
	if h.options.Watermark != nil {
		h.panicOnAbandoned, h.options.PanicOnAbandoned = h.options.PanicOnAbandoned, false
	}
	h.stream = stream.NewConfig("kinesis", &h.options.Options, h.options.Idempotency, keyLife, stream.Order{
		Serial: h.options.Serial || h.options.Watermark != nil, Keyed: naming.Key != nil,
	})
	return h, nil
}

// Invoke handles a Kinesis event and returns the partial batch response, both as JSON. It keeps nothing of the payload. An array,
// which EventBridge Pipes delivers, is answered with the eventID that Pipes wants.
//
// It returns an error, and so makes the whole batch come back, if the payload is no Kinesis event, if it is that of a
// tumbling window, if a record failed that has no sequence number to name it by, or if Options.ErrorOn says so.
func (h *Handler[T]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	failed, err := h.invoke(ctx, payload)
	if err != nil {
		return nil, err
	}
	return envelope.AppendAnswer(nil, failed), nil
}

// Handle is Invoke with the types of aws-lambda-go, for tests. An event whose Records are nil is an error, as one without
// Records is for Invoke. Do not give it to lambda.Start: the runtime would decode the whole event first, and one broken
// record would reject all others.
func (h *Handler[T]) Handle(ctx context.Context, event events.KinesisEvent) (events.KinesisEventResponse, error) {
	payload, err := json.Marshal(event)
	if err != nil {
		return events.KinesisEventResponse{}, fmt.Errorf("kinesis: event: %w", err)
	}
	failed, err := h.invoke(ctx, payload)
	if err != nil {
		return events.KinesisEventResponse{}, err
	}
	response := events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{}}
	for _, id := range failed {
		response.BatchItemFailures = append(response.BatchItemFailures, events.KinesisBatchItemFailure{ItemIdentifier: id})
	}
	return response, nil
}

// invoke returns the item identifiers to answer with.
func (h *Handler[T]) invoke(ctx context.Context, payload []byte) ([]string, error) {
	e, err := parse(payload, &h.options)
	if err == nil {
		err = e.NoWindow()
	}
	if err != nil {
		return nil, fmt.Errorf("kinesis: %w", err)
	}
	b := &segment[T]{event: e, naming: h.naming, fn: h.fn}
	engine := b.engineRecords(h.stream)
	if len(b.values) > 0 && h.stream.WantsAge() {
		oldest := b.values[0].View
		h.stream.CheckAge(h.options.Logger, oldest.ID(), oldest.ArrivedAt())
	}
	if h.options.Watermark != nil {
		return h.runFromWatermark(ctx, engine, b)
	}
	return h.stream.Run(ctx, engine, b, &e.Shards)
}
