package protocol

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the traces in docs/model/traces anew")

const traces = "../../traces"

func scenario(t *testing.T, name string) Config {
	t.Helper()
	for _, c := range Scenarios(false) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no scenario is called %q", name)
	return Config{}
}

func TestRulesHold(t *testing.T) {
	for _, c := range Scenarios(false) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			result := c.Explore(0, 0)
			for broken, trace := range result.Broken {
				t.Errorf("%v is broken:\n%s", Invariant(broken), c.Render(trace))
			}
			if !result.Complete || result.States < 1000 {
				t.Errorf("explored %d states, complete is %t; this is not what it should look at", result.States, result.Complete)
			}
		})
	}
}

// TestEveryRuleIsNeeded switches each rule off. What then breaks, and how, is in the traces.
func TestEveryRuleIsNeeded(t *testing.T) {
	names := map[string]bool{}
	for _, rule := range TheRules() {
		if names[rule.Name] {
			t.Errorf("two rules are called %q", rule.Name)
		}
		names[rule.Name] = true
		if rule.Spare != "" {
			continue
		}
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			got, found := Counterexample(rule)
			if !found {
				t.Fatalf("%v holds in the scenario %q without the rule", rule.Breaks, rule.Scenario)
			}
			file := filepath.Join(traces, rule.Name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("shortest trace; -update writes %s anew (-want +got):\n%s", file, diff)
			}
		})
	}
	files, err := filepath.Glob(traces + "/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !names[strings.TrimSuffix(filepath.Base(file), ".txt")] {
			t.Errorf("%s is of no rule", file)
		}
	}
}

// TestSpareRules switches off each rule whose absence is said to break nothing, where it comes into play.
func TestSpareRules(t *testing.T) {
	where := map[Rules][]string{
		StatusOnRelease:      {"deletion", "transaction"},
		ExpiryOnComplete:     {"expiry"},
		TakeoverByLeaseOnly:  {"expiry"},
		UndecidedIsGivenBack: {"deletion"},
	}
	for _, rule := range TheRules() {
		if rule.Spare == "" {
			continue
		}
		if len(where[rule.Bit]) == 0 {
			t.Errorf("no scenario is named for the spare rule %s", rule.Name)
		}
		for _, name := range where[rule.Bit] {
			t.Run(rule.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := scenario(t, name)
				c.Off = rule.Bit
				without := c.Explore(0, 0)
				for broken, trace := range without.Broken {
					t.Errorf("it is not spare: %v is broken:\n%s", Invariant(broken), c.Render(trace))
				}
				// A switch that does nothing would prove nothing. Of those two TestSecondLines shows what they do.
				second := rule.Bit == StatusOnRelease || rule.Bit == TakeoverByLeaseOnly
				if second {
					return
				}
				c.Off = 0
				if with := c.Explore(0, 0); with.Transitions == without.Transitions {
					t.Errorf("with the rule and without it there are %d transitions: the rule does nothing here", with.Transitions)
				}
			})
		}
	}
}

// TestSecondLines shows what spare rules are for: they hold where the rule before them is missing.
func TestSecondLines(t *testing.T) {
	for _, test := range []struct {
		name          string
		scenario      string
		change        func(*Config)
		first, second Rules
		invariant     Invariant
	}{
		{
			name: "a lease outlives its expiry", scenario: "expiry",
			change: func(c *Config) { c.Deletion = false }, // else the table deletes the row, whatever the condition says
			first:  ExpiryAfterLease, second: TakeoverByLeaseOnly, invariant: NoStartUnderLiveClaim,
		},
		{
			name: "a completion that may be stored is followed by a release", scenario: "deletion",
			change: func(c *Config) { c.Kinds &^= handDeletions },
			first:  NeverReleaseAfterSuccess, second: StatusOnRelease, invariant: NoStartAfterCompletion,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, off := range []Rules{test.first, test.first | test.second} {
				c := scenario(t, test.scenario)
				test.change(&c)
				c.Off = off
				_, broken := c.Explore(test.invariant, 0).Broken[uint64(test.invariant)]
				if want := off.has(test.second); broken != want {
					t.Errorf("with the rules %b off, %v is broken: %t, want %t", off, test.invariant, broken, want)
				}
			}
		})
	}
}

// TestReadme holds the tables of the README to the rules and invariants.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := strings.Join(strings.Fields(string(text)), " ")
	for _, v := range Invariants() {
		if row := "| `" + v.Name + "` | " + v.Says + " |"; !strings.Contains(readme, row) {
			t.Errorf("the README lacks the row %s", row)
		}
	}
	for _, rule := range TheRules() {
		row := "| [`" + rule.Name + "`](traces/" + rule.Name + ".txt) | " + rule.Says + " | `" + rule.Breaks.String() + "` |"
		if rule.Spare != "" {
			row = "| `" + rule.Name + "` | " + rule.Says + " | " + rule.Spare + " |"
		}
		if !strings.Contains(readme, row) {
			t.Errorf("the README lacks the row %s", row)
		}
	}
}
