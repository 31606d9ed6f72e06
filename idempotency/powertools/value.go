package powertools

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// value is a JSON value as all three languages hold it after parsing. Numbers are text: each makes something else of it.
type value struct {
	kind     kind
	literal  string // of a number or a boolean
	runes    runes  // of a text
	elements []value
	members  []member // in the order in which their names come first, each with its last value
}

type member struct {
	name  runes
	value value
}

// runes is a string. It can have surrogates without their partners, which a JSON escape can make and a Go string cannot
// hold, but which the three languages keep and escape each in its own way.
type runes []rune

// parse returns the value that data is, null if it is empty. It accepts what encoding/json does if that is UTF-8.
func parse(data []byte) (value, error) {
	if len(data) == 0 {
		return value{kind: null}, nil
	}
	var raw json.RawMessage
	switch err := json.Unmarshal(data, &raw); {
	case err != nil:
		return value{}, fmt.Errorf("powertools: value is no JSON: %w", err)
	case !utf8.Valid(data):
		return value{}, errors.New("powertools: value has bytes that are not UTF-8, want JSON in UTF-8")
	}
	s := scanner{data: data}
	return s.value(), nil
}

// scanner reads JSON that is known to be valid.
type scanner struct {
	data []byte
	at   int
}

// next returns the first byte behind white space, without reading it.
func (s *scanner) next() byte {
	for {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
}

func (s *scanner) value() value {
	switch s.next() {
	case '{':
		return value{kind: object, members: s.members()}
	case '[':
		return value{kind: array, elements: s.elements()}
	case '"':
		return value{kind: text, runes: s.text()}
	case 't', 'f':
		return value{kind: boolean, literal: s.literal()}
	case 'n':
		s.literal()
		return value{kind: null}
	default:
		return value{kind: number, literal: s.literal()}
	}
}

func (s *scanner) literal() string {
	start := s.at
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return string(s.data[start:s.at])
		}
		s.at++
	}
	return string(s.data[start:])
}

func (s *scanner) elements() []value {
	var elements []value
	for s.at++; s.next() != ']'; {
		elements = append(elements, s.value())
		if s.next() == ',' {
			s.at++
		}
	}
	s.at++
	return elements
}

func (s *scanner) members() []member {
	var members []member
	index := make(map[string]int)
	for s.at++; s.next() != '}'; {
		name := s.text()
		same := name.identity()
		s.next() // to the colon
		s.at++
		m := member{name, s.value()}
		if i, ok := index[same]; ok {
			members[i].value = m.value
		} else {
			index[same] = len(members)
			members = append(members, m)
		}
		if s.next() == ',' {
			s.at++
		}
	}
	s.at++
	return members
}

// text reads a string. Two escapes that are the halves of one character make that character.
func (s *scanner) text() runes {
	var t runes
	for s.at++; s.data[s.at] != '"'; {
		r, escaped := s.character()
		if n := len(t); escaped && n > 0 && utf16.IsSurrogate(r) {
			if whole := utf16.DecodeRune(t[n-1], r); whole != utf8.RuneError {
				t[n-1] = whole
				continue
			}
		}
		t = append(t, r)
	}
	s.at++
	return t
}

func (s *scanner) character() (r rune, escaped bool) {
	if s.data[s.at] != '\\' {
		r, size := utf8.DecodeRune(s.data[s.at:])
		s.at += size
		return r, false
	}
	c := s.data[s.at+1]
	s.at += 2
	switch c {
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
		for _, digit := range s.data[s.at : s.at+4] {
			r = r<<4 | rune(hexValue(digit))
		}
		s.at += 4
		return r, true
	default: // a quote, a slash, a backslash
		return rune(c), true
	}
}

func hexValue(digit byte) byte {
	if digit <= '9' {
		return digit - '0'
	}
	return digit&^0x20 - 'A' + 10
}

// identity returns a string that only equal runes have: UTF-8, and surrogates without their partners encoded like any other
// character, where a Go string would have U+FFFD for each.
func (t runes) identity() string {
	b := make([]byte, 0, len(t))
	for _, r := range t {
		if utf16.IsSurrogate(r) {
			b = append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}
