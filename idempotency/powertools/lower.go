package powertools

import (
	"slices"
	"unicode"
)

const (
	capitalSigma = 'Σ'
	finalSigma   = 'ς'
	dottedI      = 'İ'
)

// lower returns t in lower case as JavaScript's toLowerCase does: character by character but for two that the Unicode
// Standard treats specially without regard to the language (SpecialCasing.txt).
func lower(t runes) runes {
	l := make(runes, 0, len(t))
	for i, r := range t {
		switch {
		case r == dottedI:
			l = append(l, 'i', '\u0307')
		case r == capitalSigma && endsWord(t, i):
			l = append(l, finalSigma)
		default:
			l = append(l, unicode.ToLower(r))
		}
	}
	return l
}

// endsWord is the condition Final_Sigma of the Unicode Standard, section 3.13: before t[i] there is a cased letter, and
// behind it none, both without regard to what is ignored.
func endsWord(t runes, i int) bool {
	behind := slices.IndexFunc(t[i+1:], func(r rune) bool { return !caseIgnorable(r) })
	if behind >= 0 && cased(t[i+1+behind]) {
		return false
	}
	for i--; i >= 0; i-- {
		if !caseIgnorable(t[i]) {
			return cased(t[i])
		}
	}
	return false
}

func cased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

// wordInner are the characters that are ignored as parts of a word (Word_Break MidLetter, MidNumLet and Single_Quote).
const wordInner = "'.:·\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A"

func caseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		slices.Contains([]rune(wordInner), r)
}
