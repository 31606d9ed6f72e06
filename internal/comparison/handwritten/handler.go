// Package handwritten is what people write who want oncekit's requests without oncekit: a loop over an SQS event that
// claims a message's key in DynamoDB, handles the message and completes the key. The benchmarks measure oncekit against
// it. It makes the same requests with the same conditions, and does nothing else that oncekit does.
package handwritten

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"
)

// errInProgress is the error of a message whose key is claimed by somebody else.
var errInProgress = errors.New("handwritten: in progress elsewhere")

// Handler handles SQS events whose bodies are JSON of a T.
type Handler[T any] struct {
	Table       Table
	Concurrency int // how many messages at once; at least 1
	Handle      func(ctx context.Context, body *T) error
}

// Invoke handles an SQS event and returns the partial batch response, both as JSON.
func (h *Handler[T]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var event events.SQSEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	var g errgroup.Group
	g.SetLimit(h.Concurrency)
	for i := range event.Records {
		g.Go(func() error {
			m := &event.Records[i]
			if err := h.message(ctx, m); err != nil {
				mu.Lock()
				defer mu.Unlock()
				response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
			return nil // one message's failure is no other's
		})
	}
	_ = g.Wait() // no function returns an error
	return json.Marshal(response)
}

func (h *Handler[T]) message(ctx context.Context, m *events.SQSMessage) error {
	var body T
	if err := json.Unmarshal([]byte(m.Body), &body); err != nil {
		return err
	}
	key, owner := "orders#"+m.MessageId, rand.Text()
	err := h.Table.Claim(ctx, key, owner, time.Now())
	var refused *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &refused):
		if status, ok := refused.Item["status"].(*types.AttributeValueMemberS); ok && status.Value == "COMPLETED" {
			return nil
		}
		return errInProgress
	case err != nil:
		return err
	}
	if err := h.Handle(ctx, &body); err != nil {
		return errors.Join(err, h.Table.Release(context.WithoutCancel(ctx), key, owner))
	}
	return h.Table.Complete(context.WithoutCancel(ctx), key, owner, time.Now())
}
