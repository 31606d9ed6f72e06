package powertools

const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
)

// shortEscape returns the letter behind the backslash for the characters that all three languages escape so, and 0 for
// others.
func shortEscape(r rune) byte {
	switch r {
	case '"', '\\':
		return byte(r)
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	}
	return 0
}

// appendEscape appends a backslash, a u and the four hexadecimal digits of r.
func appendEscape(b []byte, r rune, digits string) []byte {
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
