package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/clicks/internal/simulation"
)

func TestTable(t *testing.T) {
	with := &simulation.Result{
		Clicks: 4, Deliveries: 14, Runs: 5, Replays: 3, NotRun: 6, Appended: 2, Appends: 3, Crashes: 1, Invocations: 7,
		Segment: simulation.Segment{Clicks: 1, Replays: 1},
		Repeats: []simulation.Repeat{{
			Click: "click-0001", Visitor: "visitor-01", Shard: "shardId-000000000000", First: 1, Again: 2, Cause: "a crash",
		}},
		DeadLettered: []simulation.DeadLetter{
			{Click: "click-0002", Visitor: "visitor-02", Attempts: 1, Err: "no click"},
			{Click: "click-0001", Visitor: "visitor-01", Attempts: 4, Err: "broken", Appended: true},
		},
		Lost: []string{"click-0003"}, OutOfOrder: []string{"visitor-01: click-0001 was appended after click-0004"},
	}
	loop := &simulation.Result{Clicks: 4, Redelivered: 8, RedeliveredOutOfOrder: 7, Discarded: 2}
	var got bytes.Buffer
	if err := printResults(&got, []*simulation.Result{with, loop, {}}); err != nil {
		t.Fatal(err)
	}
	want := `                               oncekit  loop goes on  loop stops
  handler runs                       5             0           0   calls of the function's code for a click
+ replays                            3             0           0   done before: skipped
+ not run                            6             0           0   behind a failure, or a crash came first
= deliveries                        14             0           0   of clicks to the function

  clicks appended                    2             0           0   to their visitor's journey; each counted once
+ in the dead-letter queue           1             0           0   and never appended
+ lost                               1             0           0   neither appended nor in the dead-letter queue
= clicks sent                        4             4           0   most of them in aggregates of several

  clicks appended                    2             0           0   as above
+ repeated                           1             0           0   appended again, after failures and crashes
+ repeated by redelivery             0             8           0   when half a shard came again at the end
= appends                            3             0           0   what the journeys' database did

  out of order                       1             0           0   appended after a later click of the visitor
  out of order, redelivered          0             7           0   the same, when half a shard came again

  invocations                        7             0           0   of the function
  invocations that crashed           1             0           0   in the middle of their batch
  records discarded                  0             2           0   by Lambda, when the retries were used up

With oncekit:

redelivered at the end: 1 click (0 run, 1 skipped)
moved to the dead-letter queue: 2
  click-0002 of visitor-02: no click (started 1 time)
  click-0001 of visitor-01: broken (started 4 times), although it was appended
repeated: 1
  click-0001 of visitor-01: a crash (appended by delivery 1 of shard 0, again by 2)
out of order: 1
  visitor-01: click-0001 was appended after click-0004
lost: 1
  click-0003

` + remedy
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
