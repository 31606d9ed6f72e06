package simulation

import "fmt"

// findings is what the ledger says, checked against what was sent.
type findings struct {
	appended   int      // clicks, each counted once
	repeats    []repeat // appends of a click beyond its first
	outOfOrder []disorder
	lost       []string
}

type repeat struct{ first, again appended }

// disorder is an append after that of a later click of the same visitor.
type disorder struct{ late, before appended }

func (d disorder) String() string {
	return fmt.Sprintf("%s: %s was appended after %s", d.late.click.Visitor, d.late.click.ID, d.before.click.ID)
}

// check reads the ledger, click by click, and knows nothing of how it came about. A click is lost if it was neither
// appended nor given up. An append is out of order if a later click of the same visitor was appended before it, be it that
// the click comes late or that it comes again.
func check(p *plan, ledger []appended, givenUp map[string]bool) findings {
	var f findings
	last := make(map[string]appended)   // of each click
	latest := make(map[string]appended) // of each visitor: that of the click with the highest place
	for _, a := range ledger {
		id, visitor := a.click.ID, a.click.Visitor
		if first, again := last[id]; again {
			f.repeats = append(f.repeats, repeat{first, a})
		} else {
			f.appended++
		}
		last[id] = a
		later, ok := latest[visitor]
		switch {
		case !ok || p.place[id] >= p.place[later.click.ID]:
			latest[visitor] = a
		default:
			f.outOfOrder = append(f.outOfOrder, disorder{late: a, before: later})
		}
	}
	for _, c := range p.clicks {
		if _, ok := last[c.ID]; !ok && !givenUp[c.ID] {
			f.lost = append(f.lost, c.ID)
		}
	}
	return f
}
