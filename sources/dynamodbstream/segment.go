package dynamodbstream

import (
	"context"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// event is one event that is taken apart: an envelope.EventVisitor.
type event struct {
	stream.Event[record]
	parsing record
}

// parse takes an event apart.
func parse(payload []byte) (*event, error) {
	e := &event{}
	return e, e.Parse(payload, e)
}

func (e *event) Member(name, value string) { e.parsing.member(name, value) }

func (e *event) End(raw string) {
	e.parsing.end(raw)
	e.Shards.See(stream.Shard{Stream: e.parsing.arn}) // all that a change says of its shard
	e.Add(e.parsing, raw)
	e.parsing = record{}
}

// segment is the part of a shard that an event has, on its way through the pipeline: a stream.Source.
type segment[T any] struct {
	*event
	naming *stream.Naming[*Change[T]]
	fn     func(context.Context, *Change[T]) error
	values []Change[T]
}

// engineRecords returns the event's records as the engine sees them.
func (b *segment[T]) engineRecords(config *stream.Config) []batch.Record {
	b.values = make([]Change[T], len(b.Records))
	engine := make([]batch.Record, len(b.Records))
	for i := range engine {
		r := &b.Records[i]
		b.values[i].View = View{r}
		engine[i] = batch.Record{ID: r.id, Source: r.arn, Value: &b.values[i]}
		if b.Shards.Mixed() && r.id != "" {
			engine[i].ID = r.arn + " " + r.id // an eventID is one of its stream
		}
	}
	// A change without keys may be one of any item.
	config.Lanes(engine, func(i int) (string, bool) {
		r := &b.Records[i]
		item, err := lane(r.keys)
		if r.problem == nil {
			r.problem = err
		}
		return item, err == nil
	})
	return engine
}

// Prepare names the change.
func (b *segment[T]) Prepare(i int) (pipeline.Identity, error) {
	return b.naming.Prepare(&b.values[i], &b.Records[i].problem)
}

// Decode decodes a change that was claimed without being decoded.
func (b *segment[T]) Decode(i int) error {
	b.naming.DecodeClaimed(&b.values[i], &b.Records[i].problem)
	return b.Records[i].problem
}

// Handle calls the user's function.
func (b *segment[T]) Handle(ctx context.Context, i int) error {
	if problem := b.Records[i].problem; problem != nil {
		return problem
	}
	return b.fn(ctx, &b.values[i])
}

// Len returns how many records there are.
func (b *segment[T]) Len() int { return len(b.Records) }

// ItemIdentifier is what Lambda or Pipes knows the change by.
func (b *segment[T]) ItemIdentifier(i int) (id, name string) {
	if b.Piped {
		id = b.Records[i].id
		if envelope.Broken(id) {
			id = "" // none that Pipes would know
		}
		return id, "eventID"
	}
	return b.Records[i].sequence, "sequence number"
}
