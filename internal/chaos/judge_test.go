//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// story is the evidence of two keys, "plain" and "tx". Worker 1 does both and is killed before their completions are
// known. The transaction was applied. Worker 2 takes "plain" over.
func story(change func(e *evidence)) evidence {
	e := evidence{
		history:   newHistory(),
		processes: map[int]*process{1: {number: 1, killed: true}, 2: {number: 2}},
		messages:  []*message{{id: "plain", told: 9000}, {id: "tx", told: 9000, task: task{Tx: true}}},
		rows:      map[string]row{"plain": {completed, "p2"}, "tx": {completed, "t1"}},
		effects:   map[string][]string{"plain": {"p1", "p2"}, "tx": {"t1"}},
		times:     map[string]int{"tx": 1},
	}
	for _, line := range []entry{
		{At: 1000, Worker: 1, Kind: name(idempotency.EventClaimed), Key: "plain", Owner: "p1"},
		{At: 1001, Worker: 1, Kind: started, Key: "plain", Owner: "p1", Lease: 2000},
		{At: 1000, Worker: 1, Kind: name(idempotency.EventClaimed), Key: "tx", Owner: "t1"},
		{At: 1001, Worker: 1, Kind: started, Key: "tx", Owner: "t1", Lease: 2000},
		{At: 1500, Worker: 2, Kind: name(idempotency.EventInProgress), Key: "plain", Owner: "p0"},
		{At: 2500, Worker: 2, Kind: name(idempotency.EventTakenOver), Key: "plain", Owner: "p2"},
		{At: 2501, Worker: 2, Kind: started, Key: "plain", Owner: "p2", Lease: 4000},
		{At: 2600, Worker: 2, Kind: name(idempotency.EventCompleted), Key: "plain", Owner: "p2"},
		{At: 2700, Worker: 2, Kind: name(idempotency.EventReplayed), Key: "tx", Owner: "t2"},
	} {
		e.add(line)
	}
	if change != nil {
		change(&e)
	}
	return e
}

// settled lets the claim of an owner end so.
func settled(owner string, kind idempotency.EventKind) func(*evidence) {
	return func(e *evidence) {
		c := e.claims[owner]
		e.add(entry{At: 2550, Worker: c.worker, Kind: name(kind), Key: c.key, Owner: owner})
	}
}

func TestJudge(t *testing.T) {
	want := verdict{keys: [2]int{1, 1}, effects: [2]int{2, 1}, repeats: map[string]int{byKill: 1}}
	got := judge(story(nil))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(verdict{})); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
}

// TestReasons changes why the first effect was repeated.
func TestReasons(t *testing.T) {
	frozen := func(from, to int64) func(*evidence) {
		return func(e *evidence) {
			e.processes[1].killed = false
			e.processes[1].frozen = []interval{{from, to}}
		}
	}
	both := func(changes ...func(*evidence)) func(*evidence) {
		return func(e *evidence) {
			e.processes[1].killed = false
			for _, change := range changes {
				change(e)
			}
		}
	}
	for _, test := range []struct {
		name   string
		change func(*evidence)
		want   string
	}{
		{"killed", nil, byKill},
		{"frozen", frozen(1100, 2540), byFreeze},
		{"frozen to the end", frozen(1100, 0), byFreeze},
		{"frozen, refused", both(frozen(1100, 2540), settled("p1", idempotency.EventLost)), byFreeze},
		{"frozen before, refused", both(frozen(100, 900), settled("p1", idempotency.EventLost)), byRefusal},
		{"frozen after, refused", both(frozen(3000, 4000), settled("p1", idempotency.EventLost)), byRefusal},
		{"undecided", both(settled("p1", idempotency.EventUnrecorded)), byDoubt},
		{"failed", both(settled("p1", idempotency.EventReleased), func(e *evidence) {
			e.add(entry{At: 1400, Worker: 1, Kind: failed, Key: "plain", Owner: "p1"})
		}), byFailure},
		{"alive", both(), unexcused},
		{"released without a failure", both(settled("p1", idempotency.EventReleased)), unexcused},
		{"completed, then killed", settled("p1", idempotency.EventCompleted), unexcused},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := judge(story(test.change))
			if diff := cmp.Diff(map[string]int{test.want: 1}, v.repeats); diff != "" {
				t.Errorf("repeats (-want +got):\n%s", diff)
			}
			if (test.want == unexcused) != (len(v.wrong) > 0) {
				t.Errorf("wrong are %q", v.wrong)
			}
		})
	}
}

// TestJudgeFinds breaks every promise once.
func TestJudgeFinds(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*evidence)
		want   string // part of what is found; empty: nothing is
	}{
		{"never told", func(e *evidence) { e.messages[0].told = 0 }, "plain is lost: it was never told as done"},
		{"told too early", func(e *evidence) { e.messages[1].told = 2699 }, "tx was told as done at 2699"},
		{"no effect", func(e *evidence) { delete(e.effects, "tx") }, "tx is lost: it has no effect"},
		{"not completed", func(e *evidence) { e.rows["plain"] = row{"INPROGRESS", "p2"} }, `plain has the status "INPROGRESS"`},
		{"no row", func(e *evidence) { delete(e.rows, "tx") }, `tx has the status ""`},
		{"unrecorded", func(e *evidence) {
			e.claims["p2"].settlement = name(idempotency.EventUnrecorded)
			e.rows["plain"] = row{"INPROGRESS", "p2"}
		}, ""},
		{"unrecorded transaction", func(e *evidence) {
			e.claims["t1"].settlement = name(idempotency.EventUnrecorded)
			e.rows["tx"] = row{"INPROGRESS", "t1"}
		}, `tx has the status "INPROGRESS"`},
		{"completed by another", func(e *evidence) { e.rows["tx"] = row{completed, "t2"} }, "owner t2, which had no effect"},
		{"two effects", func(e *evidence) { e.effects["tx"] = []string{"t1", "t2"} }, "tx has 2 effects by transactions"},
		{"changed twice", func(e *evidence) { e.times["tx"] = 2 }, "changed its row 2 times"},
		{"not changed", func(e *evidence) { delete(e.times, "tx") }, "changed its row 0 times"},
		{"never sent", func(e *evidence) { e.effects["other"] = []string{"o"} }, "other has an effect, and was never sent"},
		{"effect without a start", func(e *evidence) { e.claims["p1"].started = 0 }, "its handler never started"},
		{"effect of another key's owner", func(e *evidence) { e.effects["plain"] = []string{"p2", "t1"} }, "its handler never started"},
		{"live claim", func(e *evidence) { e.claims["p1"].lease = 2501 - skew.Milliseconds() }, "0 ms before a live claim"},
		{"just over", func(e *evidence) { e.claims["p1"].lease = 2500 - skew.Milliseconds() }, ""},
		{"completed before", func(e *evidence) {
			e.claims["p1"].settlement, e.claims["p1"].settled = name(idempotency.EventCompleted), 1400
		}, "plain started again although it was completed"},
		{"live but returned", func(e *evidence) {
			e.claims["p1"].lease, e.claims["p1"].failed = 3000, true
		}, ""},
		{"started after its lease", func(e *evidence) { e.claims["p2"].lease = 2000 }, "plain started 501 ms after its lease"},
		{"started a little after its lease", func(e *evidence) { e.claims["p2"].lease = 2001 }, ""},
		{"frozen before it started", func(e *evidence) {
			e.claims["p2"].lease, e.claims["p2"].claimed = 1900, 2300
			e.processes[2].frozen = []interval{{2350, 2499}}
		}, ""},
		{"a claim made twice", func(e *evidence) {
			e.add(entry{At: 9, Worker: 1, Kind: name(idempotency.EventClaimed), Key: "plain", Owner: "p1"})
		}, "owner p1 of plain has claimed twice"},
		{"two starts under one claim", func(e *evidence) {
			e.add(entry{At: 2502, Worker: 2, Kind: started, Key: "plain", Owner: "p2", Lease: 4000})
		}, "started twice under owner p2"},
		{"another worker's claim", func(e *evidence) {
			e.add(entry{At: 2502, Worker: 1, Kind: name(idempotency.EventCompleted), Key: "plain", Owner: "p2"})
		}, "which it has not claimed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := judge(story(test.change))
			wrong := strings.Join(v.wrong, "\n")
			if lost := strings.Contains(wrong, " is lost: "); lost != (v.lost == 1) {
				t.Errorf("%d keys are lost, want one: %t", v.lost, lost)
			}
			if !strings.Contains(wrong, test.want) || test.want == "" && wrong != "" {
				t.Errorf("wrong are %q, want %q", wrong, test.want)
			}
		})
	}
}
