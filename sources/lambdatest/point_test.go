package lambdatest_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestPointNames(t *testing.T) {
	var got []string
	for m := range lambdatest.AfterInvoke + 2 {
		got = append(got, m.String())
	}
	for e := range lambdatest.TimedOut + 2 {
		got = append(got, e.String())
	}
	want := []string{"Moment(0)", "BeforeInvoke", "StoreCall", "StoreReply", "AtCheckpoint", "AfterInvoke", "Moment(6)",
		"Ending(0)", "answered", "function error", "panicked", "crashed", "timed out", "Ending(6)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestRandomly(t *testing.T) {
	decide := func(seed uint64, probability float64) (decisions []bool, yes int) {
		random := lambdatest.Randomly(seed, probability)
		for i := range 2000 {
			d := random(lambdatest.Point{Moment: lambdatest.StoreCall, Name: "Claim", Key: fmt.Sprint(i % 100)})
			decisions = append(decisions, d)
			if d {
				yes++
			}
		}
		return decisions, yes
	}
	one, yes := decide(1, .1)
	if yes < 120 || yes > 280 {
		t.Errorf("%d of 2000 decisions at probability 0.1 are true, want about 200", yes)
	}
	again, _ := decide(1, .1)
	if !cmp.Equal(one, again) {
		t.Error("seed 1 decides differently the second time")
	}
	if two, _ := decide(2, .1); cmp.Equal(one, two) {
		t.Error("seeds 1 and 2 decide alike")
	}
	if _, yes := decide(1, 0); yes != 0 {
		t.Errorf("%d decisions at probability 0 are true, want 0", yes)
	}
	if _, yes := decide(1, 1); yes != 2000 {
		t.Errorf("%d decisions at probability 1 are true, want 2000", yes)
	}
}

// Goroutines reach their points in any order. Each point's decision must not depend on it.
func TestRandomlyDoesNotDependOnOrder(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	forth, back := lambdatest.Randomly(7, .5), lambdatest.Randomly(7, .5)
	want, got := make(map[string]bool), make(map[string]bool)
	for i := range keys {
		want[keys[i]] = forth(lambdatest.Point{Moment: lambdatest.AtCheckpoint, Name: keys[i]})
		want[fmt.Sprint(i)] = forth(lambdatest.Point{Moment: lambdatest.AfterInvoke, Invocation: i})
		j := len(keys) - 1 - i
		got[keys[j]] = back(lambdatest.Point{Moment: lambdatest.AtCheckpoint, Name: keys[j]})
		got[fmt.Sprint(j)] = back(lambdatest.Point{Moment: lambdatest.AfterInvoke, Invocation: j})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}
