// Package clicks is the function of the example: the handler of the clicks stream, as it runs on Lambda, in the
// simulation and in the tests.
package clicks

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// NewHandler returns a handler that appends the clicks of a stream to the journeys: those of one visitor, which is their
// partition key, in their order, those of different visitors side by side, and each once as far as the guard can see to
// it.
func NewHandler(
	journeys site.Journeys, guard *idempotency.Guard, optFns ...func(*kinesis.Options),
) (*kinesis.Handler[site.Click], error) {
	follow := func(ctx context.Context, r *kinesis.Record[site.Click]) error {
		return journeys.Append(ctx, r.Data)
	}
	options := append([]func(*kinesis.Options){func(o *kinesis.Options) {
		o.Idempotency = guard
		o.Decode = decode
	}}, optFns...)
	return kinesis.NewHandler(follow, options...)
}

// decode decodes a click. What is none is given up at once: it becomes none however often it comes, and the shard would
// stand still meanwhile.
func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return batch.Permanent(err)
	}
	if c := v.(*site.Click); c.ID == "" || c.Visitor == "" {
		return batch.Permanent(errors.New("clicks: click has no ID or no visitor"))
	}
	return nil
}
