package sqs

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// messages is one batch on its way through the pipeline. It is an envelope.Visitor while the event is taken apart, and
// a pipeline.Source afterwards.
type messages[T any] struct {
	handler  *Handler[T]
	parsing  record
	source   string // of the record being parsed
	length   int    // of the event
	records  []record
	messages []Message[T]
}

func (b *messages[T]) Member(name, value string) {
	r := &b.parsing
	switch name {
	case "messageId":
		r.id, _ = envelope.String(value)
	case "body":
		r.body = value
	case "attributes":
		r.attributes = value
	case "eventSourceARN":
		r.arn, _ = envelope.String(value)
	case "eventSource":
		b.source, _ = envelope.String(value)
	}
}

func (b *messages[T]) End(raw string) {
	r := &b.parsing
	r.raw = raw
	switch {
	case raw[0] != '{':
		r.problem = fmt.Errorf("sqs: record is %s, want an object", envelope.KindOf(raw))
	case b.source != "" && b.source != "aws:sqs":
		r.problem = fmt.Errorf("sqs: record is of event source %.100q, want %q", b.source, "aws:sqs")
	case envelope.Broken(r.id):
		// Two that differ there only would pass for one.
		r.problem = fmt.Errorf("sqs: messageId is %.100q, want text without broken characters", r.id)
	}
	if b.records == nil {
		b.records = make([]record, 0, envelope.Room(b.length, raw))
	}
	if unwrap := b.handler.options.Unwrap; len(unwrap) > 0 {
		b.records = appendUnwrapped(b.records, *r, unwrap)
	} else {
		b.records = append(b.records, *r)
	}
	b.parsing, b.source = record{}, ""
}

// engineRecords returns the batch as the engine sees it.
func (b *messages[T]) engineRecords() []batch.Record {
	b.messages = make([]Message[T], len(b.records))
	records := make([]batch.Record, len(b.records))
	for i := range records {
		m, r := &b.messages[i], &b.records[i]
		m.View = View{r}
		records[i] = batch.Record{ID: m.ID(), Source: r.arn, Attempt: m.ReceiveCount(), Value: m}
		if isFIFO(r.arn) {
			// Without a group, which SQS does not let anyone send, there is no order to keep.
			records[i].Lane = m.GroupID()
		}
	}
	return records
}

// isFIFO tells a FIFO queue by the only thing that does. A message group is no sign of one: standard queues have
// groups too, as tenants of a fair queue, and these have no order.
func isFIFO(arn string) bool { return strings.HasSuffix(arn, ".fifo") }

// Prepare names the message, and decodes its body where that cannot wait.
func (b *messages[T]) Prepare(i int) (pipeline.Identity, error) {
	m, r := &b.messages[i], &b.records[i]
	if r.problem != nil {
		return pipeline.Identity{}, r.problem
	}
	if r.ignored() {
		return pipeline.Identity{}, nil
	}
	if !b.handler.decodesClaimed() {
		if err := b.handler.decodeBody(r, &m.Body); err != nil {
			return pipeline.Identity{}, err
		}
	}
	if b.handler.pipeline.Guard == nil {
		return pipeline.Identity{}, nil
	}
	if age := b.handler.age; age.Wanted() {
		age.Check(b.handler.options.Logger, r.id, m.SentAt())
	}
	return b.handler.identify(m)
}

// Ignored reports whether the message is one that a platform sends to test the way.
func (b *messages[T]) Ignored(i int) bool { return b.records[i].ignored() }

// Decode decodes the body of a message that was claimed without. A panic is an error like another, so that the attempt
// counts.
func (b *messages[T]) Decode(i int) (err error) {
	if !b.handler.decodesClaimed() {
		return nil
	}
	defer func() {
		if value := recover(); value != nil {
			err = &batch.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return b.handler.decodeBody(&b.records[i], &b.messages[i].Body)
}

// Handle calls the user's function.
func (b *messages[T]) Handle(ctx context.Context, i int) error {
	return b.handler.fn(ctx, &b.messages[i])
}
