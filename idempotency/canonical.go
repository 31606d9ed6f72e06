package idempotency

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep the arrays and objects of a payload may be nested. Each object whose members have to be sorted
// moves all that is in it once more, so it also bounds how often a byte is moved.
const maxDepth = 256

// CanonicalJSON returns the one text that stands for the value of payload, which is JSON: two payloads have the same text
// exactly if they have the same value. White space is gone. The members of objects are sorted by the bytes of their
// names' UTF-8, at every level, and arrays keep their order. Strings are compared by their characters, however these are
// escaped, and numbers by their exact value: 1, 1.0 and 1e0 are one number, and 9007199254740993 is not
// 9007199254740992, as it would be in a float64. Where float64 does tell all numbers of the payload apart, and no name has
// a character beyond U+FFFF, the text is that of RFC 8785 (https://www.rfc-editor.org/rfc/rfc8785).
//
// An error says why a payload has no such text: it is not one JSON value; it has an object with two members of one name,
// or broken UTF-8, or half a surrogate pair, in which two parsers may see two payloads; its arrays and objects are nested
// deeper than 256 levels; or the exponent of a number has more than 18 digits. The error shows nothing of the payload but
// single characters.
func CanonicalJSON(payload []byte) ([]byte, error) {
	c := canonicalizers.Get().(*canonicalizer)
	defer c.free()
	if err := c.run(payload); err != nil {
		return nil, err
	}
	return bytes.Clone(c.text), nil
}

// canonicalizer writes canonical JSON.
type canonicalizer struct {
	source  bytes.Buffer
	decoder jsontext.Decoder
	text    []byte
	members []member // of the objects that are being written, the outermost first
	moved   []byte
}

// member is where a member of an object stands in the text, with a comma behind it.
type member struct {
	start, colon, end int
	name              string // only of a name with escapes
}

var canonicalizers = sync.Pool{New: func() any { return new(canonicalizer) }}

// How large a canonicalizer may be to be used again: few payloads need more, and one that does would hold on to it.
const (
	keptText    = 256 << 10
	keptMembers = 4 << 10
)

func (c *canonicalizer) free() {
	if cap(c.text)+cap(c.moved) > keptText || cap(c.members) > keptMembers {
		return
	}
	c.source = bytes.Buffer{} // the payload is the caller's
	c.decoder.Reset(&c.source)
	clear(c.members[:cap(c.members)])
	canonicalizers.Put(c)
}

// run sets c.text.
func (c *canonicalizer) run(payload []byte) error {
	c.text, c.members = c.text[:0], c.members[:0]
	if at := brokenUTF8(payload); at >= 0 {
		return fmt.Errorf("idempotency: payload is not valid UTF-8 at offset %d, want valid: "+
			"parsers differ in what they read in its place", at)
	}
	c.source = *bytes.NewBuffer(payload)
	c.decoder.Reset(&c.source)
	err := c.value(0)
	if err == nil {
		if _, err = c.decoder.ReadToken(); err == io.EOF {
			return nil
		}
		if err == nil {
			err = errBehind
		}
	}
	return c.problem(err)
}

// brokenUTF8 returns the offset of the first byte that is not valid UTF-8, or -1.
func brokenUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

var (
	errDeep     = fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	errExponent = errors.New("a number has an exponent of more than 18 digits")
	errBehind   = errors.New("another value follows, want one")
)

// problem is an error as the caller sees it. The decoder's own text would show names.
func (c *canonicalizer) problem(err error) error {
	at := c.decoder.InputOffset()
	syntactic, isSyntactic := errors.AsType[*jsontext.SyntacticError](err)
	if isSyntactic {
		at = syntactic.ByteOffset
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("idempotency: payload has two members of one name in an object, the second at offset %d, want one: "+
			"parsers differ in which of them counts", at)
	case errors.Is(err, io.EOF) && at == 0:
		return errors.New("idempotency: payload is empty, want JSON")
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return errors.New("idempotency: payload ends within a value, want all of its JSON")
	case isSyntactic:
		return fmt.Errorf("idempotency: payload is not JSON at offset %d: %w", at, syntactic.Err)
	}
	return fmt.Errorf("idempotency: payload has no canonical JSON, at offset %d: %w", at, err)
}

func (c *canonicalizer) value(depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	switch c.decoder.PeekKind() {
	case '{':
		return c.object(depth)
	case '[':
		return c.array(depth)
	}
	value, err := c.decoder.ReadValue()
	if err != nil {
		return err
	}
	switch value.Kind() {
	case '"':
		_, err = c.quoted(value)
	case '0':
		c.text, err = appendNumber(c.text, value)
	default:
		c.text = append(c.text, value...)
	}
	return err
}

// quoted writes a string with as few escapes as it can have, and reports whether it has any.
func (c *canonicalizer) quoted(value []byte) (escaped bool, err error) {
	if bytes.IndexByte(value, '\\') < 0 {
		c.text = append(c.text, value...)
		return false, nil
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err == nil {
		c.text, err = jsontext.AppendQuote(c.text, text)
	}
	return true, err
}

func (c *canonicalizer) array(depth int) error {
	if _, err := c.decoder.ReadToken(); err != nil {
		return err
	}
	c.text = append(c.text, '[')
	start := len(c.text)
	for c.decoder.PeekKind() != ']' {
		if err := c.value(depth + 1); err != nil {
			return err
		}
		c.text = append(c.text, ',')
	}
	return c.end(start, ']')
}

// end writes the end of an array or object, over the last comma of its inside, which begins at start.
func (c *canonicalizer) end(start int, last byte) error {
	if len(c.text) > start {
		c.text = c.text[:len(c.text)-1]
	}
	c.text = append(c.text, last)
	_, err := c.decoder.ReadToken()
	return err
}

func (c *canonicalizer) object(depth int) error {
	if _, err := c.decoder.ReadToken(); err != nil {
		return err
	}
	c.text = append(c.text, '{')
	start, first := len(c.text), len(c.members)
	for c.decoder.PeekKind() != '}' {
		name, err := c.decoder.ReadValue()
		if err != nil {
			return err
		}
		m := member{start: len(c.text)}
		escaped, err := c.quoted(name)
		if err != nil {
			return err
		}
		m.colon = len(c.text)
		if escaped {
			unquoted, _ := jsontext.AppendUnquote(nil, c.text[m.start:])
			m.name = string(unquoted)
		}
		c.text = append(c.text, ':')
		if err := c.value(depth + 1); err != nil {
			return err
		}
		c.text = append(c.text, ',')
		m.end = len(c.text)
		c.members = append(c.members, m)
	}
	c.sort(start, c.members[first:])
	c.members = c.members[:first]
	return c.end(start, '}')
}

// sort sorts the members of an object whose inside begins at start.
func (c *canonicalizer) sort(start int, members []member) {
	order := func(a, b member) int {
		if a.name == "" && b.name == "" {
			return bytes.Compare(c.text[a.start+1:a.colon-1], c.text[b.start+1:b.colon-1])
		}
		return cmp.Compare(c.nameOf(a), c.nameOf(b))
	}
	if slices.IsSortedFunc(members, order) {
		return
	}
	slices.SortFunc(members, order)
	c.moved = append(c.moved[:0], c.text[start:]...)
	c.text = c.text[:start]
	for _, m := range members {
		c.text = append(c.text, c.moved[m.start-start:m.end-start]...)
	}
}

func (c *canonicalizer) nameOf(m member) string {
	if m.name != "" {
		return m.name
	}
	return string(c.text[m.start+1 : m.colon-1])
}
