package envelope

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may be nested, as with encoding/json.
const maxDepth = 10_000

// scanner reads JSON, which it checks, and moves behind what it has read. It accepts what encoding/json does, broken UTF-8
// and duplicate names included.
type scanner struct {
	data []byte
	at   int
	want string // what was expected at the place where the scanner stopped
}

// fail notes what was expected.
func (s *scanner) fail(want string) bool {
	s.want = want
	return false
}

// notJSON is the error of a scanner that has failed.
func (s *scanner) notJSON() error {
	if s.at >= len(s.data) {
		return fmt.Errorf("event is not JSON: %w at offset %d, want %s", io.ErrUnexpectedEOF, len(s.data), s.want)
	}
	found, _ := utf8.DecodeRune(s.data[s.at:])
	return fmt.Errorf("event is not JSON: found %q at offset %d, want %s", found, s.at, s.want)
}

// peek skips white space and returns the byte behind it, or 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// token reads one byte behind white space.
func (s *scanner) token(c byte, want string) bool {
	if s.peek() != c {
		return s.fail(want)
	}
	s.at++
	return true
}

// value reads a value that is in depth arrays and objects.
func (s *scanner) value(depth int) bool {
	switch c := s.peek(); {
	case c == '"':
		return s.quotedString()
	case (c == '{' || c == '[') && depth >= maxDepth:
		return s.fail(fmt.Sprintf("at most %d nested arrays and objects", maxDepth))
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.fail("a value")
}

func (s *scanner) object(depth int) bool {
	s.at++
	if s.peek() == '}' {
		s.at++
		return true
	}
	for {
		if !s.name() || !s.value(depth+1) {
			return false
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return true
		default:
			return s.fail("a comma or the end of the object")
		}
	}
}

// name reads a member's name and the colon behind it.
func (s *scanner) name() bool {
	if s.peek() != '"' {
		return s.fail("a member's name")
	}
	return s.quotedString() && s.token(':', "a colon")
}

func (s *scanner) array(depth int) bool {
	s.at++
	if s.peek() == ']' {
		s.at++
		return true
	}
	for {
		if !s.value(depth + 1) {
			return false
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return true
		default:
			return s.fail("a comma or the end of the array")
		}
	}
}

func (s *scanner) literal(text string) bool {
	for i := range len(text) {
		if s.at >= len(s.data) || s.data[s.at] != text[i] {
			return s.fail(text)
		}
		s.at++
	}
	return true
}

// number reads a number: -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
func (s *scanner) number() bool {
	if s.data[s.at] == '-' {
		s.at++
	}
	if s.is('0') {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.is('.') {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.is('e') || s.is('E') {
		s.at++
		if s.is('+') || s.is('-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) is(c byte) bool { return s.at < len(s.data) && s.data[s.at] == c }

// digits reads at least one digit.
func (s *scanner) digits() bool {
	begin := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > begin || s.fail("a digit")
}

// Eight bytes at a time, each a lane of a uint64.
const (
	low       = 0x0101010101010101
	high      = 0x8080808080808080
	quotes    = low * '"'
	backslash = low * '\\'
	controls  = low * 0x20
)

// quotedString reads a string. It looks at eight bytes at once for one that ends the string, begins an escape, or must not be in it:
// in a lane of (x - low) & ^x & high the high bit is set if that lane of x is zero, and in one of (w - controls) &
// ^w & high if that of w is below 0x20. A borrow from a lane that is set may set others above it, so only the lowest counts.
func (s *scanner) quotedString() bool {
	i := s.at + 1
	for {
		for i+8 <= len(s.data) {
			w := binary.LittleEndian.Uint64(s.data[i:])
			q, b := w^quotes, w^backslash
			found := ((q-low)&^q | (b-low)&^b | (w-controls)&^w) & high
			if found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		if i >= len(s.data) {
			s.at = len(s.data)
			return s.fail("the end of the string")
		}
		switch c := s.data[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c == '\\':
			n := escape(s.data[i:])
			if n == 0 {
				s.at = i
				return s.fail("an escape such as \\n or \\u000a")
			}
			i += n
		case c < 0x20:
			s.at = i
			return s.fail("no control character in a string")
		default:
			i++ // in the last bytes of the event
		}
	}
}

// escape returns the length of the escape that data begins with, or 0 if it is none.
func escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data) < 6 {
			return 0
		}
		for _, c := range data[2:6] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}
