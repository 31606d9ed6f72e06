package watermark

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Whole is the Sub of a record as a whole. It is behind all of the record's parts.
const Whole = math.MaxInt32

// maxDigits is how many digits a sequence number has at most, leading zeros aside: Kinesis' own limit
// (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_StartingPosition.html).
const maxDigits = 129

// Position is a place in a shard. Its zero value is before everything.
type Position struct {
	// Sequence is a record's sequence number, in decimal digits, and empty in the zero Position. Leading zeros do not
	// count.
	Sequence string
	// Sub is the place of a record inside an aggregated one, from 0, or Whole.
	Sub int
}

// IsZero reports whether p is the zero Position, that of a shard of which nothing is done.
func (p Position) IsZero() bool { return p == Position{} }

// Compare returns -1 if p is before q, 1 if it is behind q, and 0 if they are the same place. Sequence numbers are
// compared as numbers, of any length. It does not allocate.
func (p Position) Compare(q Position) int {
	if p.Sequence == "" || q.Sequence == "" {
		return cmp.Or(cmp.Compare(min(len(p.Sequence), 1), min(len(q.Sequence), 1)), cmp.Compare(p.Sub, q.Sub))
	}
	a, b := strings.TrimLeft(p.Sequence, "0"), strings.TrimLeft(q.Sequence, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b), cmp.Compare(p.Sub, q.Sub))
}

// Valid returns an error that says what p has instead of a sequence number of up to 129 digits and a Sub from 0 to
// Whole. The zero Position is valid.
func (p Position) Valid() error {
	if p.IsZero() {
		return nil
	}
	if err := validSequence(p.Sequence); err != nil {
		return err
	}
	if p.Sub < 0 || p.Sub > Whole {
		return fmt.Errorf("watermark: Position.Sub is %d, want 0 to %d", p.Sub, Whole)
	}
	return nil
}

func validSequence(sequence string) error {
	for i := range len(sequence) {
		if sequence[i] < '0' || sequence[i] > '9' {
			return fmt.Errorf("watermark: Position.Sequence is %.200q, want decimal digits", sequence)
		}
	}
	switch n := len(strings.TrimLeft(sequence, "0")); {
	case sequence == "":
		return fmt.Errorf("watermark: Position.Sequence is empty, want decimal digits")
	case n > maxDigits:
		return fmt.Errorf("watermark: Position.Sequence has %d digits, want at most %d", n, maxDigits)
	}
	return nil
}

// String returns the sequence number, and the sub-sequence number after a slash unless p is a whole record: "4960" or
// "4960/3". The zero Position is "".
func (p Position) String() string {
	if p.Sub == Whole || p.IsZero() {
		return p.Sequence
	}
	return p.Sequence + "/" + strconv.Itoa(p.Sub)
}

// Parse returns the Position that String would write so. It takes leading zeros too. Anything else is an error.
func Parse(s string) (Position, error) {
	p := Position{Sequence: s, Sub: Whole}
	if sequence, sub, ok := strings.Cut(s, "/"); ok {
		n, err := strconv.ParseUint(sub, 10, 31)
		if err != nil {
			return Position{}, fmt.Errorf("watermark: position is %.200q, want digits, or digits/0 to digits/%d", s, Whole)
		}
		p = Position{Sequence: sequence, Sub: int(n)}
	}
	if s == "" {
		return Position{}, nil
	}
	if err := p.Valid(); err != nil {
		return Position{}, err
	}
	return p, nil
}
