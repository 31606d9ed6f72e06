package simulation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/clicks/site"
)

// TestCheck has five clicks, three of ada and two of bob, and a ledger of what was appended.
func TestCheck(t *testing.T) {
	p := &plan{byID: make(map[string]site.Click), place: map[string]int{"a0": 0, "a1": 1, "a2": 2, "b0": 0, "b1": 1}}
	for _, id := range []string{"a0", "b0", "a1", "b1", "a2"} {
		c := site.Click{ID: id, Visitor: map[byte]string{'a': "ada", 'b': "bob"}[id[0]]}
		p.clicks, p.byID[id] = append(p.clicks, c), c
	}
	for _, test := range []struct {
		name       string
		ledger     []string
		givenUp    string
		appended   int
		repeats    []string
		outOfOrder []string
		lost       []string
	}{
		{name: "all is well", ledger: []string{"a0", "a1", "b0", "a2", "b1"}, appended: 5},
		{name: "visitors are in no order", ledger: []string{"b0", "b1", "a0", "a1", "a2"}, appended: 5},
		{name: "lost", ledger: []string{"a0", "a2", "b1"}, appended: 3, lost: []string{"b0", "a1"}},
		{name: "given up", ledger: []string{"a0", "b0", "b1", "a2"}, givenUp: "a1", appended: 4},
		{name: "given up and appended", ledger: []string{"a0", "a1", "b0", "a2", "b1"}, givenUp: "a1", appended: 5},
		{
			name: "late", ledger: []string{"a0", "a2", "a1", "b0", "b1"}, appended: 5,
			outOfOrder: []string{"ada: a1 was appended after a2"},
		},
		{
			name: "two are late", ledger: []string{"a2", "a0", "a1", "b0", "b1"}, appended: 5,
			outOfOrder: []string{"ada: a0 was appended after a2", "ada: a1 was appended after a2"},
		},
		{name: "repeated at once", ledger: []string{"a0", "a0", "a1", "b0", "a2", "b1"}, appended: 5, repeats: []string{"a0"}},
		{
			name: "repeated later", ledger: []string{"a0", "a1", "b0", "b1", "a0", "a1", "a2"}, appended: 5,
			repeats: []string{"a0", "a1"}, outOfOrder: []string{"ada: a0 was appended after a1"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ledger []appended
			for _, id := range test.ledger {
				ledger = append(ledger, appended{click: p.byID[id]})
			}
			got := check(p, ledger, map[string]bool{test.givenUp: true})
			var repeats, outOfOrder []string
			for _, r := range got.repeats {
				repeats = append(repeats, r.again.click.ID)
			}
			for _, d := range got.outOfOrder {
				outOfOrder = append(outOfOrder, d.String())
			}
			if got.appended != test.appended {
				t.Errorf("%d clicks were appended, want %d", got.appended, test.appended)
			}
			for _, list := range []struct {
				name      string
				want, got []string
			}{
				{"repeats", test.repeats, repeats}, {"out of order", test.outOfOrder, outOfOrder}, {"lost", test.lost, got.lost},
			} {
				if diff := cmp.Diff(list.want, list.got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", list.name, diff)
				}
			}
		})
	}
}
