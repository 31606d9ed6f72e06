package watermark_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency/watermark"
)

const long = "49590338271490256608559692538361571095921575989136588898" // 56 digits

func whole(sequence string) watermark.Position {
	return watermark.Position{Sequence: sequence, Sub: watermark.Whole}
}

// TestCompare has positions in ascending order, several of a line being the same place.
func TestCompare(t *testing.T) {
	ascending := [][]watermark.Position{
		{{}},
		{{Sequence: "0"}, {Sequence: "00"}},
		{{Sequence: "0", Sub: 1}},
		{whole("0")},
		{{Sequence: "1"}, {Sequence: "01"}},
		{whole("1")},
		{whole("9"), whole("09"), whole(strings.Repeat("0", 200) + "9")},
		{{Sequence: "10", Sub: 2}},
		{{Sequence: "10", Sub: 10}, {Sequence: "0010", Sub: 10}},
		{{Sequence: "10", Sub: watermark.Whole - 1}},
		{whole("10")},
		{{Sequence: "11"}},
		{whole(long)},
		{whole(strings.TrimSuffix(long, "8") + "9")},
		{whole("1" + long)}, // 57 digits
		{whole(strings.Repeat("9", 129))},
	}
	for i, low := range ascending {
		for j, high := range ascending {
			for _, p := range low {
				for _, q := range high {
					want := min(max(i-j, -1), 1)
					if got := p.Compare(q); got != want {
						t.Errorf("%#v.Compare(%#v) = %d, want %d", p, q, got, want)
					}
				}
			}
		}
	}
}

func TestCompareAsNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sequence := rapid.StringMatching(`0{0,3}[0-9]{1,60}`)
		sub := rapid.SampledFrom([]int{0, 1, 2, 10, watermark.Whole - 1, watermark.Whole})
		p := watermark.Position{Sequence: sequence.Draw(t, "p"), Sub: sub.Draw(t, "p.Sub")}
		q := watermark.Position{Sequence: sequence.Draw(t, "q"), Sub: sub.Draw(t, "q.Sub")}
		if rapid.Bool().Draw(t, "same") {
			q.Sequence = "0" + p.Sequence
		}
		a, _ := new(big.Int).SetString(p.Sequence, 10)
		b, _ := new(big.Int).SetString(q.Sequence, 10)
		want := a.Cmp(b)
		if want == 0 {
			want = min(max(p.Sub-q.Sub, -1), 1)
		}
		if got := p.Compare(q); got != want {
			t.Fatalf("%v.Compare(%v) = %d, want %d", p, q, got, want)
		}
		if got := q.Compare(p); got != -want {
			t.Fatalf("%v.Compare(%v) = %d, want %d", q, p, got, -want)
		}
	})
}

// TestCompareDoesNotAllocate is about a call for every record.
func TestCompareDoesNotAllocate(t *testing.T) {
	p, q := whole("00"+long), watermark.Position{Sequence: long, Sub: 3}
	order := 0
	if got := testing.AllocsPerRun(100, func() { order += p.Compare(q) }); got != 0 || order <= 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text string
		want watermark.Position
		err  string // part of the error; empty: none
	}{
		{"", watermark.Position{}, ""},
		{"0", whole("0"), ""},
		{long, whole(long), ""},
		{long + "/0", watermark.Position{Sequence: long}, ""},
		{"007/12", watermark.Position{Sequence: "007", Sub: 12}, ""},
		{"7/2147483646", watermark.Position{Sequence: "7", Sub: watermark.Whole - 1}, ""},
		{"7/2147483647", whole("7"), ""},
		{strings.Repeat("9", 129), whole(strings.Repeat("9", 129)), ""},
		{strings.Repeat("0", 9) + strings.Repeat("9", 129), whole(strings.Repeat("0", 9) + strings.Repeat("9", 129)), ""},

		{strings.Repeat("9", 130), watermark.Position{}, "Position.Sequence has 130 digits, want at most 129"},
		{"7/2147483648", watermark.Position{}, `position is "7/2147483648", want digits, or digits/0 to digits/2147483647`},
		{"7/-1", watermark.Position{}, "want digits, or"},
		{"7/+1", watermark.Position{}, "want digits, or"},
		{"7/", watermark.Position{}, "want digits, or"},
		{"7/1/2", watermark.Position{}, "want digits, or"},
		{"/1", watermark.Position{}, "Position.Sequence is empty, want decimal digits"},
		{"-7", watermark.Position{}, `Position.Sequence is "-7", want decimal digits`},
		{"7 ", watermark.Position{}, "want decimal digits"},
		{"1e3", watermark.Position{}, "want decimal digits"},
		{"٣", watermark.Position{}, "want decimal digits"},
		{"TRIM_HORIZON", watermark.Position{}, `Position.Sequence is "TRIM_HORIZON", want decimal digits`},
		{"shardId-000000000000:" + long, watermark.Position{}, "want decimal digits"},
	} {
		got, err := watermark.Parse(test.text)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", test.text, diff)
		}
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("Parse(%q): error is %v, want one that contains %q", test.text, err, test.err)
		}
	}
}

func TestValid(t *testing.T) {
	for _, test := range []struct {
		position watermark.Position
		err      string
	}{
		{watermark.Position{}, ""},
		{watermark.Position{Sequence: "0"}, ""},
		{whole(long), ""},
		{watermark.Position{Sequence: "5", Sub: -1}, "Position.Sub is -1, want 0 to 2147483647"},
		{watermark.Position{Sequence: "5", Sub: watermark.Whole + 1}, "Position.Sub is 2147483648, want 0 to 2147483647"},
		{watermark.Position{Sub: 1}, "Position.Sequence is empty"},
		{watermark.Position{Sequence: "x"}, `Position.Sequence is "x"`},
	} {
		err := test.position.Valid()
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%#v: error is %v, want one that contains %q", test.position, err, test.err)
		}
	}
}

// FuzzParse has every text refused, or read such that it is written again as the same place.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "0", "007/12", long, long + "/2147483647", "7/x", "/", "//", "-1", "٣"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := watermark.Parse(text)
		if err != nil {
			if !p.IsZero() {
				t.Errorf("Parse(%q) = %#v with error %v, want the zero Position", text, p, err)
			}
			return
		}
		if err := p.Valid(); err != nil {
			t.Errorf("Parse(%q) = %#v, which is not valid: %v", text, p, err)
		}
		again, err := watermark.Parse(p.String())
		if err != nil || again != p {
			t.Errorf("Parse(%q) = %#v, %v, want %#v", p.String(), again, err, p)
		}
	})
}
