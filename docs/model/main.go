// Command model explores the protocol with large bounds, and prints what it has looked at. It fails if an invariant is
// broken, or if one holds that should not without a rule. The README beside it explains the rest.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/oncekit/oncekit/docs/model/internal/protocol"
)

func main() {
	small := flag.Bool("small", false, "explore the bounds of the tests, in seconds instead of minutes")
	only := flag.String("scenario", "", "explore only this scenario, and no rules")
	flag.Parse()
	sound := explore(!*small, *only)
	if *only == "" {
		sound = withoutRules() && sound
	}
	if !sound {
		os.Exit(1)
	}
}

// explore explores the scenarios, and reports whether all invariants hold.
func explore(large bool, only string) bool {
	sound := true
	begin := time.Now()
	var states, transitions int
	fmt.Printf("%-12s %9s %12s %6s %8s  %s\n", "scenario", "states", "transitions", "depth", "time", "bounds")
	for _, c := range protocol.Scenarios(large) {
		if only != "" && c.Name != only {
			continue
		}
		start := time.Now()
		result := c.Explore(0, 0)
		states, transitions = states+result.States, transitions+result.Transitions
		fmt.Printf("%-12s %9d %12d %6d %7.1fs  %s\n", c.Name, result.States, result.Transitions, result.Depth,
			time.Since(start).Seconds(), c.Bounds())
		for broken, trace := range result.Broken {
			sound = false
			fmt.Printf("\n%v is broken:\n%s\n", protocol.Invariant(broken), c.Render(trace))
		}
	}
	fmt.Printf("%-12s %9d %12d %6s %7.1fs\n\n", "all", states, transitions, "", time.Since(begin).Seconds())
	verdict := "each holds in every one of these states"
	if !sound {
		verdict = "NOT ALL HOLD"
	}
	fmt.Printf("invariants: %s\n", verdict)
	for _, v := range protocol.Invariants() {
		fmt.Printf("  %-25s  %s\n", v.Name, v.Says)
	}
	return sound
}

// withoutRules switches each rule off, and reports whether something breaks then, for those of which that is said.
func withoutRules() bool {
	sound := true
	fmt.Printf("\n%-34s %s\n", "without the rule", "breaks")
	for _, rule := range protocol.TheRules() {
		breaks := "nothing: it is a spare one"
		if rule.Spare == "" {
			breaks = rule.Breaks.String()
			if _, found := protocol.Counterexample(rule); !found {
				sound = false
				breaks = "NOTHING, where " + breaks + " should break"
			}
		}
		fmt.Printf("%-34s %s\n", rule.Name, breaks)
	}
	return sound
}
