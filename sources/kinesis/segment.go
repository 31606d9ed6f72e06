package kinesis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/kpl"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// event is one event that is taken apart: an envelope.EventVisitor.
type event struct {
	stream.Event[record]
	keepAggregates bool
	parsing        record
	source         string // of the record being parsed
}

// parse takes an event apart.
func parse(payload []byte, options *Options) (*event, error) {
	e := &event{keepAggregates: options.KeepAggregates}
	return e, e.Parse(payload, e)
}

func (e *event) Member(name, value string) {
	r := &e.parsing
	switch name {
	case "kinesis":
		r.kinesis = value
	case "eventID":
		r.id, _ = envelope.String(value)
	case "eventSourceARN":
		r.arn, _ = envelope.String(value)
	case "eventSource":
		e.source, _ = envelope.String(value)
	}
}

func (e *event) End(raw string) {
	r := &e.parsing
	r.raw, r.sub = raw, whole
	number := ""
	if e.Piped && r.kinesis == "" {
		r.kinesis = raw // Pipes puts what Lambda has in an object of its own beside the rest
	}
	for name, value := range envelope.Members(r.kinesis) {
		switch name {
		case "partitionKey":
			r.partitionKey, _ = envelope.String(value)
		case "sequenceNumber":
			if r.sequence, _ = envelope.String(value); envelope.Broken(r.sequence) {
				r.sequence = "" // none that Lambda would know
			}
		case "data":
			r.data = value
		case "subSequenceNumber":
			number = value
		}
	}
	r.problem = e.problem(r)
	if r.problem == nil && number != "" {
		r.problem = r.member(number)
	}
	e.Shards.See(stream.Shard{Stream: streamARN(r.arn), ID: r.shard()})
	if r.problem != nil || r.sub != whole || e.keepAggregates || !e.expand(r) {
		e.Add(*r, raw)
	}
	e.parsing, e.source = record{}, ""
}

// member makes r the record of an aggregate that View.JSON has made a record of its own, so that it has its key when it
// comes back from a dead-letter queue. Kinesis itself knows no such number.
func (r *record) member(number string) error {
	sub, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return fmt.Errorf("kinesis: subSequenceNumber of record %.200q is %.100q, want a number from 0", r.id, number)
	}
	data, err := r.appendData(nil)
	if err != nil {
		return fmt.Errorf("kinesis: data of record %.200q are no base64: %w", r.id, err)
	}
	r.sub, r.child = int(sub), data
	if r.id != "" {
		r.id += "#" + number
	}
	return nil
}

// problem says why r is no record of a stream, or returns nil.
func (e *event) problem(r *record) error {
	switch {
	case r.raw[0] != '{':
		return fmt.Errorf("kinesis: record is %s, want an object", envelope.KindOf(r.raw))
	case e.source != "" && e.source != "aws:kinesis":
		return fmt.Errorf("kinesis: record is of event source %.100q, want %q", e.source, "aws:kinesis")
	case len(r.kinesis) == 0 || r.kinesis[0] != '{':
		return fmt.Errorf("kinesis: record %.200q has kinesis that is %s, want an object", r.id, envelope.KindOf(r.kinesis))
	case envelope.Broken(r.id):
		// Two that differ there only would pass for one.
		return fmt.Errorf("kinesis: eventID is %.100q, want text without broken characters", r.id)
	}
	return nil
}

// expand adds the records of r if it is an aggregate, and reports whether it is one.
func (e *event) expand(r *record) bool {
	text, ok := envelope.String(r.data)
	if !ok || !kpl.MayBeAggregate(text) {
		return false
	}
	data, err := r.appendData(nil)
	if err != nil || !kpl.IsAggregate(data) {
		return false
	}
	children, err := kpl.Split(data)
	if err != nil {
		// Whatever is in it came out of a producer as one record, with a digest that is right, so it will not get better.
		r.problem = fmt.Errorf("kinesis: record %.200q is a KPL aggregate that is broken: %w", r.id, err)
		return false
	}
	parent := r.id
	for i, child := range children {
		r.sub, r.child, r.partitionKey = i, child.Data, child.PartitionKey
		if parent != "" {
			r.id = parent + "#" + strconv.Itoa(i)
		}
		e.Add(*r, r.raw)
	}
	return true
}

// segment is the part of a shard that an event has, on its way through the pipeline: a stream.Source.
type segment[T any] struct {
	*event
	naming  *stream.Naming[*Record[T]]
	fn      func(context.Context, *Record[T]) error
	values  []Record[T]
	reached *reached // by the watermark, nil: there is none
}

// engineRecords returns the event's records as the engine sees them.
func (b *segment[T]) engineRecords(config *stream.Config) []batch.Record {
	b.values = make([]Record[T], len(b.Records))
	engine := make([]batch.Record, len(b.Records))
	for i := range engine {
		r := &b.Records[i]
		b.values[i].View = View{r}
		engine[i] = batch.Record{ID: r.id, Source: streamARN(r.arn), Value: &b.values[i]}
		if _, sequence, _ := strings.Cut(r.eventID(), ":"); sequence == "" || sequence != r.sequence || b.Shards.Mixed() {
			engine[i].ID = r.place(i) // an eventID that is not of this place must not pass for another record's
		}
	}
	// A record that is broken may be one of any partition key.
	config.Lanes(engine, func(i int) (string, bool) { return b.Records[i].partitionKey, b.Records[i].problem == nil })
	return engine
}

// place is what tells the record from others of the event where its eventID does not.
func (r *record) place(i int) string {
	place := streamARN(r.arn) + " " + r.eventID() + " " + r.sequence
	if r.sub != whole {
		place += "#" + strconv.Itoa(r.sub)
	}
	if r.sequence == "" {
		place += " record " + strconv.Itoa(i)
	}
	return strings.TrimSpace(place)
}

// Prepare names the record.
func (b *segment[T]) Prepare(i int) (pipeline.Identity, error) {
	if b.Done(i) {
		return pipeline.Identity{}, nil // what it is does not matter any more
	}
	return b.naming.Prepare(&b.values[i], &b.Records[i].problem)
}

// Done reports whether the watermark is past the record.
func (b *segment[T]) Done(i int) bool { return b.reached != nil && b.reached.past(&b.Records[i]) }

// Decode decodes a record that was claimed without being decoded.
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

// ItemIdentifier is the aggregate's, for a record of one: Lambda and Pipes know no other.
func (b *segment[T]) ItemIdentifier(i int) (id, name string) {
	if b.Piped {
		id = b.Records[i].eventID()
		if envelope.Broken(id) {
			id = "" // none that Pipes would know
		}
		return id, "eventID"
	}
	return b.Records[i].sequence, "sequence number"
}
