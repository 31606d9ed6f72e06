package envelope

import (
	"errors"
	"fmt"
	"strings"
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

// Split tells v of the records in payload. What it hands out are parts of one copy of the payload, which the caller may
// overwrite afterwards. It returns an error that says what was found if the payload is anything but one JSON object
// with an array named Records, and in that case v must not be used.
func Split(payload []byte, v Visitor) error {
	s := splitter{scanner: scanner{data: payload}, text: string(payload), visitor: v}
	return s.event()
}

// IsArray reports whether the payload is an array, as far as its first byte tells.
func IsArray(payload []byte) bool {
	s := scanner{data: payload}
	return s.peek() == '['
}

// Elements tells v of the elements of payload, which is one JSON array, or, if it is any other JSON value, of that value as
// the only one. Otherwise it is like Split.
func Elements(payload []byte, v Visitor) error {
	s := splitter{scanner: scanner{data: payload}, text: string(payload), visitor: v}
	if s.peek() == '[' {
		if err := s.records(1); err != nil {
			return err
		}
	} else if !s.record(0) {
		return s.notJSON()
	}
	return s.end("one JSON value")
}

// maxBatch is the largest batch that a mapping can be set to
// (https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html).
const maxBatch = 10_000

// Room returns how many records there are in a payload of size bytes if all are as large as the first, of which raw is the
// JSON, but no more than a batch can have: what to make room for.
func Room(size int, raw string) int { return min(size/len(raw)+1, maxBatch) }

// ErrNoRecords means that the event is a JSON object without Records, or with null.
var ErrNoRecords = errors.New("event has no Records")

// noRecords is an ErrNoRecords that says what was found.
type noRecords string

func (e noRecords) Error() string        { return string(e) }
func (e noRecords) Is(target error) bool { return target == ErrNoRecords }

type splitter struct {
	scanner
	text    string // a copy of data
	visitor Visitor
	others  []string // members of the event beside Records
}

func (s *splitter) event() error {
	if kind := s.peek(); kind != '{' {
		if !s.value(0) {
			return s.notJSON()
		}
		return fmt.Errorf("event is %s, want an object with Records", KindOf(string(kind)))
	}
	s.at++
	found, null := false, false
	for more := s.peek() != '}'; more; {
		s.peek()
		start := s.at
		if !s.name() {
			return s.notJSON()
		}
		name := memberName(quoted(s.text[start:s.at]))
		switch kind := s.peek(); {
		case name != "Records":
			if err := s.eventMember(name, quoted(s.text[start:s.at])); err != nil {
				return err
			}
		case found:
			return errors.New("event has Records twice, want one array")
		case kind == '[':
			found = true
			if err := s.records(2); err != nil {
				return err
			}
		default:
			found, null = true, kind == 'n'
			if !s.value(1) {
				return s.notJSON()
			}
			if !null {
				return fmt.Errorf("event has Records that are %s, want an array", KindOf(string(kind)))
			}
		}
		if more = s.peek() == ','; more {
			s.at++
		}
	}
	if !s.token('}', "a comma or the end of the event") {
		return s.notJSON()
	}
	if err := s.end("one JSON object"); err != nil {
		return err
	}
	switch {
	case null:
		return noRecords("event has Records that are null, want an array")
	case !found:
		return noRecords("event has no Records, but " + memberList(s.others))
	}
	return nil
}

// end returns an error if anything but white space follows.
func (s *splitter) end(want string) error {
	end := s.at
	if s.peek(); s.at < len(s.data) {
		return fmt.Errorf("event is followed by more bytes at offset %d, want %s", end, want)
	}
	return nil
}

// quoted cuts the colon, and the white space before it, off what stands before a value.
func quoted(name string) string { return name[:strings.LastIndexByte(name, '"')+1] }

// eventMember reads the value of another member.
func (s *splitter) eventMember(name, quoted string) error {
	if s.others = append(s.others, clip(quoted)); len(s.others) > 8 {
		s.others = append(s.others[:8], "...")
	}
	start := s.at
	if !s.value(1) {
		return s.notJSON()
	}
	if v, ok := s.visitor.(EventVisitor); ok {
		v.EventMember(name, s.text[start:s.at])
	}
	return nil
}

// records reads an array of records, each of which is in depth arrays and objects.
func (s *splitter) records(depth int) error {
	s.at++
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		if !s.record(depth) {
			return s.notJSON()
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return nil
		default:
			s.fail("a comma or the end of the records")
			return s.notJSON()
		}
	}
}

// record reads one record and tells the visitor of it.
func (s *splitter) record(depth int) bool {
	kind, start := s.peek(), s.at
	if kind != '{' {
		if !s.value(depth) {
			return false
		}
		s.visitor.End(s.text[start:s.at])
		return true
	}
	s.at++
	for more := s.peek() != '}'; more; {
		if s.peek() != '"' {
			return s.fail("a member's name")
		}
		name := s.at
		if !s.quotedString() {
			return false
		}
		nameEnd := s.at
		if !s.token(':', "a colon") {
			return false
		}
		s.peek()
		value := s.at
		if !s.value(depth + 1) {
			return false
		}
		s.visitor.Member(memberName(s.text[name:nameEnd]), s.text[value:s.at])
		if more = s.peek() == ','; more {
			s.at++
		}
	}
	if !s.token('}', "a comma or the end of the record") {
		return false
	}
	s.visitor.End(s.text[start:s.at])
	return true
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
	switch c := value[0]; {
	case c == 'n':
		return "null"
	case c == 't' || c == 'f':
		return "a boolean"
	case c == '"':
		return "a string"
	case c == '-' || '0' <= c && c <= '9':
		return "a number"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	default:
		return "no JSON value"
	}
}
