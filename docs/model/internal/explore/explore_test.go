package explore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/docs/model/internal/explore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// jugs are two jugs, of 3 and 5 litres, that are filled, emptied and poured into each other.
type jugs struct{ Three, Five int }

type pouring struct{}

func (pouring) Initial() jugs { return jugs{} }

func (pouring) Next(s *jugs, emit func(string, *jugs)) {
	into := min(s.Three, 5-s.Five)
	back := min(s.Five, 3-s.Three)
	for _, next := range []struct {
		step  string
		after jugs
	}{
		{"fill 3", jugs{3, s.Five}},
		{"fill 5", jugs{s.Three, 5}},
		{"empty 3", jugs{0, s.Five}},
		{"empty 5", jugs{s.Three, 0}},
		{"3 into 5", jugs{s.Three - into, s.Five + into}},
		{"5 into 3", jugs{s.Three + back, s.Five - back}},
	} {
		emit(next.step, &next.after)
	}
}

const (
	fourLitres = 1 << iota // broken by a state
	spilled                // broken by a step
	sevenLitres
)

func (pouring) Judge(before *jugs, step string, after *jugs) uint64 {
	if step == "empty 5" && before.Five == 4 {
		return spilled
	}
	return 0
}

func (pouring) Settle(s *jugs) uint64 {
	switch {
	case s.Five == 4:
		return fourLitres
	case s.Three+s.Five == 7:
		return sevenLitres
	}
	return 0
}

func TestRun(t *testing.T) {
	result := explore.Run[jugs, string](pouring{}, explore.Options{})
	if result.States != 16 || result.Transitions != 16*6 || !result.Complete {
		t.Errorf("explored %d states and %d transitions, complete is %t; want 16, 96, true",
			result.States, result.Transitions, result.Complete)
	}
	want := map[uint64][]string{
		fourLitres:  {"fill 5", "5 into 3", "empty 3", "5 into 3", "fill 5", "5 into 3"},
		spilled:     {"fill 5", "5 into 3", "empty 3", "5 into 3", "fill 5", "5 into 3", "empty 5"},
		sevenLitres: {"fill 5", "5 into 3", "empty 3", "5 into 3", "fill 5"},
	}
	got := map[uint64][]string{}
	for property, trace := range result.Broken {
		got[property] = trace.Steps
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shortest ways (-want +got):\n%s", diff)
	}
}

func TestRunEndsEarly(t *testing.T) {
	for _, options := range []explore.Options{{Until: sevenLitres}, {MaxStates: 5}} {
		result := explore.Run[jugs, string](pouring{}, options)
		if result.Complete || result.States >= 16 {
			t.Errorf("%+v: explored %d states, complete is %t; want fewer than 16, false", options, result.States, result.Complete)
		}
	}
}
