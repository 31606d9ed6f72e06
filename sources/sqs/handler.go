package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/payload"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// Handler handles the batches of a queue. It is a lambda.Handler, to be started with lambda.Start(handler). It is safe
// for concurrent use and holds no state of an invocation.
type Handler[T any] struct {
	fn       func(context.Context, *Message[T]) error
	options  Options
	pipeline pipeline.Config
	body     payload.Decoder[T]
	key      func(*Message[T]) (string, error) // nil: the messageId
	age      *pipeline.AgeWarning
}

// NewHandler returns a Handler that calls fn for each message. What fn returns decides about the message: nil means that
// it is done, an error that it comes back; see batch.Handler for more.
//
// The error names each option that is out of its limits.
func NewHandler[T any](fn func(ctx context.Context, m *Message[T]) error, optFns ...func(*Options)) (*Handler[T], error) {
	if fn == nil {
		return nil, errors.New("sqs: handler function is nil, want a function")
	}
	h := &Handler[T]{fn: fn, options: pipeline.Apply(optFns), age: pipeline.NewAgeWarning(0)}
	key, err := keyFunction[T](&h.options)
	if err := errors.Join(h.options.validate(), err); err != nil {
		return nil, err
	}
	if h.options.Idempotency != nil {
		h.key = key
		if expiry := h.options.Idempotency.Options().Expiry; expiry > 0 && expiry < messageLife {
			h.age = pipeline.NewAgeWarning(expiry)
		}
	}
	h.options.Unwrap = slices.Clone(h.options.Unwrap)
	h.body = payload.NewDecoder[T](h.options.Decode)
	// A message held elsewhere is given back at once: waiting costs Lambda time, and the queue waits for nothing.
	h.pipeline = pipeline.Config{Batch: &h.options.Options, Guard: h.options.Idempotency, Expiry: keyLife, Wait: -1}
	return h, nil
}

// decodesClaimed reports whether bodies are decoded when their messages are claimed, so that a message that is done already
// is not decoded. Under a key of the user's another message may have the same one, and share the outcome: one that cannot
// be decoded must not be the one that is claimed. Nor should its fingerprint fail before it says what is wrong with it.
func (h *Handler[T]) decodesClaimed() bool {
	o := &h.options
	return o.Idempotency != nil && h.key == nil && o.Fingerprint == nil && o.PayloadFingerprint == nil
}

// Invoke handles an SQS event and returns the partial batch response, both as JSON. It keeps nothing of the payload. An
// array of messages, which EventBridge Pipes delivers, is answered alike
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-batching-concurrency.html).
//
// It returns an error, and so makes the whole batch come back, if the payload is no SQS event, if a message failed that
// has no messageId to name it by, or if Options.ErrorOn says so.
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
func (h *Handler[T]) Handle(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	payload, err := json.Marshal(event)
	if err != nil {
		return events.SQSEventResponse{}, fmt.Errorf("sqs: event: %w", err)
	}
	failed, err := h.invoke(ctx, payload)
	if err != nil {
		return events.SQSEventResponse{}, err
	}
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, id := range failed {
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return response, nil
}

// invoke returns the identifiers of the failed messages.
func (h *Handler[T]) invoke(ctx context.Context, payload []byte) (failed []string, err error) {
	b := &messages[T]{handler: h, length: len(payload)}
	split := envelope.Split
	if envelope.IsArray(payload) {
		split = envelope.Elements
	}
	if err := split(payload, b); err != nil {
		return nil, fmt.Errorf("sqs: %w", err)
	}
	report := pipeline.Run(ctx, b.engineRecords(), b, &h.pipeline)
	if h.options.Visibility != nil {
		changeVisibility(ctx, h.options.Visibility, h.options.Logger, report, b.records)
	}
	if err := report.Err(h.options.ErrorOn); err != nil {
		return nil, err
	}
	return identifiers(report, b.records)
}

// identifiers returns the item identifiers of the failed messages, each once and in input order.
//
// An identifier that is empty makes Lambda take the whole batch for failed, which is right for a message that cannot be
// named, but only an error makes it loud.
func identifiers(report *batch.Report, records []record) ([]string, error) {
	n := report.Failed()
	if n == 0 {
		return nil, nil
	}
	failed := make([]string, 0, n)
	named := make(map[string]bool, n)
	for i := range report.Results {
		result := &report.Results[i]
		id := records[i].id // and not the engine's record's, which user code has seen
		if result.Outcome.Done() || named[id] {
			continue
		}
		if id == "" {
			return nil, fmt.Errorf("sqs: record %d has no messageId and failed, so the whole batch has to come back: %w",
				i, result.Err)
		}
		named[id] = true
		failed = append(failed, id)
	}
	return failed, nil
}
