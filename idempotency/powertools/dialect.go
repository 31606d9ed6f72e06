package powertools

// dialect is how one language's Powertools makes a key of a value.
type dialect struct {
	name string
	json syntax
	// appendBare appends the text of a value that is no object and no array and stands alone. Nil: as json does.
	appendBare func([]byte, value) []byte
	// missing reports whether Powertools finds no key in the value, which is not null.
	missing func(value) bool
	// encode makes the key of the hash.
	encode func(sum []byte) string
}

var dialects = [...]dialect{
	TypeScript: {
		name:    "TypeScript",
		json:    syntax{",", ":", appendTypeScriptNumber, appendTypeScriptText, sortTypeScript},
		missing: missingInTypeScript,
		encode:  encodeTypeScript,
	},
	Python: {
		name:    "Python",
		json:    syntax{", ", ": ", appendPythonNumber, appendPythonText, sortPython},
		missing: missingInPython,
		encode:  encodePython,
	},
	Java: {
		name:       "Java",
		json:       syntax{",", ":", appendJacksonNumber, appendJacksonText, func(m []member) []member { return m }},
		appendBare: appendJavaBare,
		missing:    missingInJava,
		encode:     encodeJava,
	},
}

// appendText appends the text that is hashed.
func (d *dialect) appendText(b []byte, v value) []byte {
	if d.appendBare != nil && v.kind != array && v.kind != object {
		return d.appendBare(b, v)
	}
	return d.json.append(b, v)
}

// syntax is what differs in the JSON that the languages write.
type syntax struct {
	comma, colon string
	appendNumber func(b []byte, literal string) []byte
	appendString func([]byte, runes) []byte
	// order returns the members of an object as they are written, and leaves those it gets as they are.
	order func([]member) []member
}

// append appends the JSON of v.
func (s *syntax) append(b []byte, v value) []byte {
	switch v.kind {
	case null:
		return append(b, "null"...)
	case boolean:
		return append(b, v.literal...)
	case number:
		return s.appendNumber(b, v.literal)
	case text:
		return s.appendString(b, v.runes)
	case array:
		b = append(b, '[')
		for i, element := range v.elements {
			if i > 0 {
				b = append(b, s.comma...)
			}
			b = s.append(b, element)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i, m := range s.order(v.members) {
			if i > 0 {
				b = append(b, s.comma...)
			}
			b = s.appendString(b, m.name)
			b = append(b, s.colon...)
			b = s.append(b, m.value)
		}
		return append(b, '}')
	}
}
