package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	rows := []Row[[]int]{
		{" ", "sent", func(r []int) int { return r[0] }, "to the function"},
		{},
		{"=", "delivered", func(r []int) int { return r[1] }, "by the queue"},
	}
	var b bytes.Buffer
	Table(&b, rows, Column[[]int]{"oncekit", []int{1, 2}}, Column[[]int]{"no guard", []int{30, 4000}})
	want := `                               oncekit  no guard
  sent                               1        30   to the function

= delivered                          2      4000   by the queue
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestLongListsAreCut(t *testing.T) {
	for n, want := range map[int]string{
		0: "", maxListed: strings.Repeat("  x\n", maxListed), maxListed + 3: strings.Repeat("  x\n", maxListed) + "  and 3 more\n",
	} {
		var b bytes.Buffer
		List(&b, n, func(int) string { return "x" })
		if got := b.String(); got != want {
			t.Errorf("list of %d is %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 crashes", 1: "1 crash", 2: "2 crashes"} {
		if got := Count(n, "crash", "crashes"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	for _, test := range []struct {
		terminal bool
		want     string
	}{
		{false, "kept\n"},
		{true, "\rgone" + strings.Repeat(" ", 72) + "\rkept" + strings.Repeat(" ", 72) + "\n"},
	} {
		var b bytes.Buffer
		p := NewProgress(&b)
		p.terminal = test.terminal
		p.Show("gone", false)
		p.Show("kept", true)
		p.End()
		if got := b.String(); got != test.want {
			t.Errorf("terminal %v: output is %q, want %q", test.terminal, got, test.want)
		}
	}
}
