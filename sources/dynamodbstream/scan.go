package dynamodbstream

import "strings"

// scanner reads JSON from its front to its back, once. It relies on the JSON being valid, as envelope.Split hands it
// out; of anything else it makes nonsense, but it neither panics nor hangs.
type scanner struct {
	text string
	at   int
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// rest returns what is not read yet.
func (s *scanner) rest() string { return s.text[min(s.at, len(s.text)):] }

// take reads the next byte if it is c, and reports whether it is.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// quoted reads a string, and returns it with its quotes and escapes. It is "" if there is none. A quote ends the string
// unless an odd number of backslashes stands before it.
func (s *scanner) quoted() string {
	if s.peek() != '"' {
		return ""
	}
	start := s.at
	for s.at++; ; {
		i := strings.IndexByte(s.text[s.at:], '"')
		if i < 0 {
			s.at = len(s.text)
			return ""
		}
		s.at += i + 1
		escapes := 0
		for s.text[s.at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return s.text[start:s.at]
		}
	}
}

// literal reads the word if it is next, and reports whether it is.
func (s *scanner) literal(word string) bool {
	s.peek()
	if !strings.HasPrefix(s.rest(), word) {
		return false
	}
	s.at += len(word)
	return true
}

// members reads an object and calls f for each of its members, with the name as it is quoted. f reads the value.
func (s *scanner) members(f func(name string) *valueError) *valueError {
	s.take('{')
	for s.peek() == '"' {
		name := s.quoted()
		s.take(':')
		if err := f(name); err != nil {
			return err
		}
		if !s.take(',') {
			break
		}
	}
	s.take('}')
	return nil
}

// elements reads an array and calls f for each of its elements, with its index. f reads it.
func (s *scanner) elements(f func(i int) *valueError) *valueError {
	s.take('[')
	for i := 0; s.peek() != ']' && s.peek() != 0; i++ {
		if err := f(i); err != nil {
			return err
		}
		if !s.take(',') {
			break
		}
	}
	s.take(']')
	return nil
}
