package protocol

import (
	"fmt"
	"strings"
)

// Counterexample returns a shortest way to what breaks without a rule, as its file shows it, and whether there is one.
func Counterexample(rule Rule) (text string, found bool) {
	for _, c := range Scenarios(false) {
		if c.Name != rule.Scenario {
			continue
		}
		c.Off = rule.Bit
		trace, found := c.Explore(rule.Breaks, 0).Broken[uint64(rule.Breaks)]
		if !found {
			return "", false
		}
		var b strings.Builder
		fmt.Fprintf(&b, "Rule:     %s\nWithout:  %s\nBroken:   %v: %s\n", rule.Says, rule.Off, rule.Breaks, rule.Breaks.says())
		fmt.Fprintf(&b, "Scenario: %s: %s. A lease has %d ticks, Skew is %d; %s at t=0.\n\n", c.Name, c.Says, c.Lease, c.Skew,
			c.clocks(&State{}))
		b.WriteString(c.Render(trace))
		if rule.Breaks == NothingIsLost {
			b.WriteString("     From here on, redeliveries do not finish the record in that time.\n")
		}
		return b.String(), true
	}
	return "", false
}

func (v Invariant) says() string {
	for i := range invariants {
		if invariants[i].Invariant == v {
			return invariants[i].Says
		}
	}
	return ""
}
