package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Visitor is told of the records of an event, in their order.
type Visitor interface {
	// Member is called for each member of a record that is an object. The value is JSON.
	Member(name, value string)
	// End is called after the members of a record, with all of it. A record that is no object has no members.
	End(raw string)
}

// EventVisitor is a Visitor that is told of the event's members beside Records as well.
type EventVisitor interface {
	Visitor
	// EventMember is called for each of them, before or after the records, with its value as JSON.
	EventMember(name, value string)
}

// The duplicate names and broken UTF-8 that encoding/json accepts are no reason to refuse a batch.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Split tells v of the records in payload. What it hands out are parts of one copy of the payload, which the caller may
// overwrite afterwards. It returns an error that says what was found if the payload is anything but one JSON object
// with an array named Records, and in that case v must not be used.
func Split(payload []byte, v Visitor) error {
	s := splitter{text: string(payload), visitor: v}
	s.decoder = jsontext.NewDecoder(bytes.NewBuffer(payload), lenient)
	return s.event()
}

// ErrNoRecords means that the event is a JSON object without Records, or with null.
var ErrNoRecords = errors.New("event has no Records")

// noRecords is an ErrNoRecords that says what was found.
type noRecords string

func (e noRecords) Error() string        { return string(e) }
func (e noRecords) Is(target error) bool { return target == ErrNoRecords }

type splitter struct {
	text    string
	decoder *jsontext.Decoder
	visitor Visitor
}

func (s *splitter) event() error {
	switch kind := s.decoder.PeekKind(); kind {
	case '{':
	case 0:
		_, err := s.decoder.ReadToken()
		return notJSON(err)
	default:
		if _, err := s.decoder.ReadValue(); err != nil {
			return notJSON(err)
		}
		return fmt.Errorf("event is %s, want an object with Records", kindName(kind))
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return notJSON(err)
	}
	var others []string
	found, null := false, false
	for s.decoder.PeekKind() != '}' {
		name, err := s.value()
		if err != nil {
			return err
		}
		if memberName(name) != "Records" {
			if others = append(others, clip(name)); len(others) > 8 {
				others = append(others[:8], "...")
			}
			if err := s.eventMember(memberName(name)); err != nil {
				return err
			}
			continue
		}
		if found {
			return errors.New("event has Records twice, want one array")
		}
		found = true
		if null = s.decoder.PeekKind() == 'n'; null {
			if err := s.decoder.SkipValue(); err != nil {
				return notJSON(err)
			}
			continue
		}
		if err := s.records(); err != nil {
			return err
		}
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return notJSON(err)
	}
	end := s.decoder.InputOffset()
	if _, err := s.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("event is followed by more bytes at offset %d, want one JSON object", end)
	}
	if null {
		return noRecords("event has Records that are null, want an array")
	}
	if !found {
		return noRecords("event has no Records, but " + memberList(others))
	}
	return nil
}

func (s *splitter) eventMember(name string) error {
	v, ok := s.visitor.(EventVisitor)
	if !ok {
		return notJSON(s.decoder.SkipValue())
	}
	value, err := s.value()
	if err == nil {
		v.EventMember(name, value)
	}
	return err
}

func (s *splitter) records() error {
	if kind := s.decoder.PeekKind(); kind != '[' && kind != 0 {
		return fmt.Errorf("event has Records that are %s, want an array", kindName(kind))
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return notJSON(err)
	}
	for s.decoder.PeekKind() != ']' {
		if err := s.record(); err != nil {
			return err
		}
	}
	_, err := s.decoder.ReadToken()
	return notJSON(err)
}

func (s *splitter) record() error {
	if kind := s.decoder.PeekKind(); kind != '{' {
		raw, err := s.value()
		if err == nil {
			s.visitor.End(raw)
		}
		return err
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return notJSON(err)
	}
	start := s.decoder.InputOffset() - 1
	for s.decoder.PeekKind() != '}' {
		name, err := s.value()
		if err != nil {
			return err
		}
		value, err := s.value()
		if err != nil {
			return err
		}
		s.visitor.Member(memberName(name), value)
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return notJSON(err)
	}
	s.visitor.End(s.text[start:s.decoder.InputOffset()])
	return nil
}

// value reads the next value or name, and returns it as part of the copy.
func (s *splitter) value() (string, error) {
	value, err := s.decoder.ReadValue()
	if err != nil {
		return "", notJSON(err)
	}
	end := s.decoder.InputOffset()
	return s.text[end-int64(len(value)) : end], nil
}

func notJSON(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("event is not JSON: %w", err)
}

// memberName is String for a name, which is compared and not kept, so that broken UTF-8 does not matter.
func memberName(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	name, _ := String(quoted)
	return name
}

// clip shortens what is shown of a name.
func clip(name string) string {
	if len(name) > 100 {
		return strings.ToValidUTF8(name[:100], "") + "..."
	}
	return name
}

// kindName names the kind of a JSON value in a sentence.
func kindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return "no JSON value"
	}
}

func memberList(names []string) string {
	if len(names) == 0 {
		return "is an empty object"
	}
	return strings.Join(names, ", ")
}

// KindOf names the kind of a JSON value in a sentence: "a number", "null", or "missing" for no value at all.
func KindOf(value string) string {
	if value == "" {
		return "missing"
	}
	if value[0] == '-' || (value[0] >= '0' && value[0] <= '9') {
		return kindName('0')
	}
	return kindName(jsontext.Kind(value[0]))
}
