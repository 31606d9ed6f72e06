package sqs

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/payload"
)

// inner is what was unwrapped from a body.
type inner struct {
	// value is what the body is decoded from: the text of a JSON string, or any other JSON value as it is.
	value   string
	layers  []layer // the envelopes that were opened, the outermost first; but not S3
	id      string  // the messageId with the record's number, for a record of an S3 event
	index   int     // that number
	of      int     // how many records the S3 event has, 0: it is none
	ignored bool    // S3 sent it to test the way
}

// layer is an envelope that was opened.
type layer struct {
	envelope Envelope
	text     string // JSON
}

// Inner returns the text that Body is decoded from: what is inside of all envelopes of Options.Unwrap, or, without those,
// what RawBody returns.
func (v View) Inner() string {
	if v.r == nil || v.r.inner == nil {
		return v.RawBody()
	}
	return text(v.r.inner.value)
}

// Envelope returns the envelope that was unwrapped from the body, as JSON: the notification, for SNS and SNSOrRaw, the
// event, for EventBridge, and the one record, for S3. It is "" if there was none. It decodes into an events.SNSEntity, an
// events.EventBridgeEvent or an events.S3EventRecord.
func (v View) Envelope(e Envelope) string {
	if v.r == nil || v.r.inner == nil {
		return ""
	}
	if e == S3 && v.r.inner.of > 0 {
		return v.r.inner.value
	}
	for _, l := range v.r.inner.layers {
		if l.envelope == e.opened() {
			return l.text
		}
	}
	return ""
}

func (r *record) ignored() bool { return r.inner != nil && r.inner.ignored }

// ownKey is the source's own identity of the record.
func (r *record) ownKey() string {
	if r.inner == nil || r.inner.of == 0 {
		return r.id
	}
	return idempotency.JoinKey(r.id, strconv.Itoa(r.inner.index))
}

// appendUnwrapped appends r with its body unwrapped, which makes several records of one if that is an S3 event.
func appendUnwrapped(records []record, r record, unwrap []Envelope) []record {
	if r.problem != nil || !isString(r.body) {
		return append(records, r) // it fails for that
	}
	buffer := payload.Borrow()
	defer payload.Return(buffer)
	in, place := &inner{value: r.body}, "body"
	for _, e := range unwrap {
		*buffer = appendText((*buffer)[:0], in.value)
		if e == S3 {
			event, err := parseS3(*buffer)
			if err != nil {
				r.problem = r.noEnvelope(place, e, err)
				return append(records, r)
			}
			return event.appendRecords(records, r, in)
		}
		var o object
		err := o.parse(*buffer)
		raw := e == SNSOrRaw && !o.isOfSNS()
		if err == nil && !raw {
			var inside string
			if inside, err = o.open(e); err == nil {
				in.layers = append(in.layers, layer{e.opened(), o.raw})
				in.value, place = inside, e.member()+" in the body"
			}
		}
		if err != nil && !raw {
			r.problem = r.noEnvelope(place, e, err)
			return append(records, r)
		}
	}
	r.inner = in
	return append(records, r)
}

func (r *record) noEnvelope(place string, e Envelope, err error) error {
	return fmt.Errorf("sqs: %s of message %q is no %s: %w", place, r.id, e.form(), err)
}

// s3Event is the event notification of S3: an envelope.Visitor.
type s3Event struct {
	records []s3Record
	parsing s3Record
	test    bool // it is an s3:TestEvent, and has no records
}

type s3Record struct {
	raw string
	s3  string // JSON
}

func (e *s3Event) Member(name, value string) {
	if name == "s3" {
		e.parsing.s3 = value
	}
}

func (e *s3Event) End(raw string) {
	e.parsing.raw = raw
	e.records = append(e.records, e.parsing)
	e.parsing = s3Record{}
}

func parseS3(body []byte) (*s3Event, error) {
	event := &s3Event{}
	err := envelope.Split(body, event)
	switch {
	case errors.Is(err, envelope.ErrNoRecords):
		var o object
		if o.parse(body) == nil && isString(o.event) && text(o.event) == "s3:TestEvent" {
			return &s3Event{test: true}, nil
		}
		return nil, errors.New("its Records are missing or null, want an array") // and not what there is instead
	case err != nil:
		return nil, err
	case len(event.records) == 0:
		return nil, errors.New("its Records are an empty array, want at least one record")
	}
	return event, nil
}

// appendRecords appends r once for each record of the event.
func (e *s3Event) appendRecords(records []record, r record, in *inner) []record {
	if e.test {
		in.ignored = true
		r.inner = in
		return append(records, r)
	}
	for i, s3 := range e.records {
		one := r
		one.inner = &inner{value: s3.raw, layers: in.layers, index: i, of: len(e.records)}
		if r.id != "" {
			one.inner.id = r.id + "#" + strconv.Itoa(i)
		}
		if s3.raw[0] != '{' {
			one.problem = fmt.Errorf("sqs: S3 record %d of message %q is %s, want an object", i, r.id, envelope.KindOf(s3.raw))
		} else if len(s3.s3) == 0 || s3.s3[0] != '{' {
			one.problem = fmt.Errorf("sqs: S3 record %d of message %q has s3 that is %s, want an object", i, r.id,
				envelope.KindOf(s3.s3))
		}
		records = append(records, one)
	}
	return records
}

// alone returns the message as it would be with this record of an S3 event only.
func (r *record) alone() string {
	body := `{"Records":[` + r.inner.value + `]}`
	for i := len(r.inner.layers) - 1; i >= 0; i-- {
		l := r.inner.layers[i]
		member := l.envelope.member()
		if isString(envelope.Member(l.text, member)) {
			body = quote(body)
		}
		body = withMember(l.text, member, body)
	}
	return withMember(r.raw, "body", quote(body), "md5OfBody")
}

// withMember returns the object with another value for one of its members, and without others.
func withMember(object, name, value string, without ...string) string {
	text := []byte{'{'}
	for n, v := range envelope.Members(object) {
		if len(without) > 0 && n == without[0] {
			continue
		}
		if n == name {
			v = value
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(append(text, quote(n)...), ':'), v...)
	}
	return string(append(text, '}'))
}

func quote(text string) string {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return string(quoted)
}
