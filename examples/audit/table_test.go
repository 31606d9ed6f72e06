package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/audit/internal/simulation"
)

func TestTable(t *testing.T) {
	crash := simulation.Repeat{Change: "order-0001 change 2", First: 1, Again: 2, Cause: "a crash"}
	with := &simulation.Result{
		Changes: 4, Redelivered: 2, Retries: 3, Deliveries: 9, Logged: 2, Rows: 3, Repeats: []simulation.Repeat{crash},
		OutOfOrder: []string{"order-0002 change 1"}, Lost: []string{"order-0003 change 1"},
		DeadLettered: []simulation.DeadLetter{
			{Change: "order-0004 change 1", Err: errors.New("no number")},
			{Change: "order-0001 change 1", Err: errors.New("throttled"), Logged: true},
		},
		Replays: 5, Crashes: 1, LogThrottled: 2, Throttled: 6, RepliesLost: 7,
	}
	loop := &simulation.Result{Changes: 4, Repeats: make([]simulation.Repeat, 30)}
	var got bytes.Buffer
	if err := printResults(&got, []*simulation.Result{with, loop, {}}); err != nil {
		t.Fatal(err)
	}
	want := `
                               oncekit  goes on  stops
  changes                            4        4      0   each a record of the stream
+ redelivered                        2        0      0   the mapping began again further back
+ retries                            3        0      0   came back: a failure, a crash, or behind one
= deliveries                         9        0      0   records handed to the function

  changes logged                     2        0      0   at least once; each counted once
+ in the dead-letter queue           1        0      0   and never logged; the reasons are below
+ lost                               1        0      0   Lambda discarded them, with a notice of where they were
= changes                            4        4      0   as above

  changes logged                     2        0      0   as above
+ repeated                           1       30      0   rows of a change beyond its first
= rows                               3        0      0   what the log has

  out of order                       1        0      0   first logged after a later change of the same order
  replays                            5        0      0   deliveries of what was done: not run

  invocations that crashed           1        0      0   with up to 20 changes each
  appends throttled                  2        0      0   the log refused them
  store calls throttled              6        0      0   the guard's table refused them
  store replies lost                 7        0      0   it did them, and nobody heard

` + legend + `
With oncekit:

moved to the dead-letter queue: 2
  order-0004 change 1: no number (after 3 attempts)
  order-0001 change 1: throttled (after 3 attempts, although it was logged)
repeated: 1
  order-0001 change 2: a crash (logged by invocation 1, and again by 2)
out of order: 1
  order-0002 change 1
lost: 1
  order-0003 change 1

` + remedy
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// TestVerdict is the exit code: a run in which the guard broke its word is a failure.
func TestVerdict(t *testing.T) {
	explained := simulation.Repeat{Cause: "a crash"}
	for _, test := range []struct {
		name   string
		result simulation.Result
		want   string
	}{
		{"nothing", simulation.Result{}, ""},
		{"explained", simulation.Result{Repeats: []simulation.Repeat{explained}}, ""},
		{"lost", simulation.Result{Lost: []string{"order-0007 change 1"}}, "1 change was lost: order-0007 change 1"},
		{"out of order", simulation.Result{OutOfOrder: []string{"a", "b"}}, "2 changes were logged out of order: a, b"},
		{
			"unexplained", simulation.Result{Repeats: []simulation.Repeat{explained, {Unexplained: true}}},
			"1 row was repeated without a reason",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := verdict(&test.result); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("verdict is %q, want %q", got, test.want)
			}
		})
	}
}
