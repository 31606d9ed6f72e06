package envelope

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Members yields the names and values of the object's members, the values as JSON, and nothing if object is none. It is
// valid JSON, as Split hands it out, or empty. Of several members with one name the last one counts, as with
// encoding/json.
func Members(object string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		i := skipSpace(object, 0)
		if i >= len(object) || object[i] != '{' {
			return
		}
		for i = skipSpace(object, i+1); i < len(object) && object[i] == '"'; i = skipSpace(object, i+1) {
			end := skipString(object, i)
			name := memberName(object[i:end])
			start := skipSpace(object, skipSpace(object, end)+1) // behind the colon
			end = skipValue(object, start)
			if !yield(name, object[start:end]) {
				return
			}
			if i = skipSpace(object, end); i >= len(object) || object[i] != ',' {
				return
			}
		}
	}
}

// Member returns the value of the object's member with the name, or "" if it has none.
func Member(object, name string) (value string) {
	for n, v := range Members(object) {
		if n == name {
			value = v
		}
	}
	return value
}

// String returns the text of a JSON string, and whether value is one. Without escapes that is a part of value.
func String(value string) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if strings.IndexByte(inner, '\\') < 0 && utf8.ValidString(inner) {
		return inner, true
	}
	unquoted, _ := jsontext.AppendUnquote(nil, value) // fails for broken UTF-8 only, of which it replaces each byte
	return string(unquoted), true
}

// Broken reports whether a text that String returned had broken UTF-8, or an escape that is half of a character. Two such
// texts may have been different.
func Broken(text string) bool { return strings.Contains(text, "\ufffd") }

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at i. It looks for quotes, which are few, and then whether
// an odd number of backslashes stands before one.
func skipString(s string, i int) int {
	for i++; ; {
		quote := strings.IndexByte(s[i:], '"')
		if quote < 0 {
			return len(s)
		}
		i += quote + 1
		escapes := 0
		for s[i-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// skipValue returns the index behind the value that begins at i.
func skipValue(s string, i int) int {
	for depth := 0; i < len(s); {
		switch s[i] {
		case '"':
			i = skipString(s, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
			continue
		default: // a literal or a number
			for i < len(s) && strings.IndexByte(",]} \n\r\t", s[i]) < 0 {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(s)
}
