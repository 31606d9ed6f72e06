package main

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/orders/internal/simulation"
)

func TestTable(t *testing.T) {
	with := &simulation.Result{
		Orders: 4, Duplicates: 1, Retries: 6, Deliveries: 11, Runs: 4, Replays: 1, Unreached: 6,
		Charged: 2, Charges: 3, Crashes: 1,
		Repeats: []simulation.Repeat{{Order: "order-0001", First: 1, Again: 2, Cause: "a crash"}},
		DeadLettered: []simulation.DeadLetter{
			{Order: "order-0002", Err: errors.New("declined")},
			{Order: "order-0004", Receives: 5, Err: errors.New("the table is down"), Charged: true},
		},
		Lost: []string{"order-0003"},
	}
	without := &simulation.Result{Orders: 4, Repeats: make([]simulation.Repeat, 5)}
	var got bytes.Buffer
	if err := printResult(&got, with, without); err != nil {
		t.Fatal(err)
	}
	want := `
                               oncekit  no guard
  orders sent                        4         4   each a message in the queue
+ second copies                      1         0   the queue delivered the message twice
+ retries                            6         0   the message came back: a failure or a crash
= deliveries                        11         0   messages handed to the function

  handler runs                       4         0   calls of the function's code
+ replays                            1         0   done before, or a twin in the same batch: not run
+ in progress elsewhere              0         0   not run, came back later
+ never reached the handler          6         0   not JSON, claim failed, no time left, or a crash first
= deliveries                        11         0   as above

  orders charged                     2         0   at least once; each counted once
+ in the dead-letter queue           1         0   and never charged; the reasons are below
+ lost                               1         0   neither charged nor in the dead-letter queue
= orders sent                        4         4   as above

  orders charged                     2         0   as above
+ repeated                           1         5   charges of an order beyond its first
= charges                            3         0   what the payment provider did

  invocations that crashed           1         0   with up to ten deliveries each
  handlers that hung                 0         0   they ignored their context and were given up
  store calls throttled              0         0   the store refused them
  store replies lost                 0         0   the store did it, and nobody heard

With oncekit:

moved to the dead-letter queue: 2
  order-0002: declined (by the function)
  order-0004: the table is down (by the queue after 5 receives, although it was charged)
repeated: 1
  order-0001: a crash (charged by invocation 1, and again by 2)
lost: 1
  order-0003

` + remedy
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// TestRemedy is told only where there is something to remedy, and where that is what it remedies.
func TestRemedy(t *testing.T) {
	explained, unexplained := simulation.Repeat{Order: "order-0001"}, simulation.Repeat{Unexplained: true}
	for _, test := range []struct {
		name    string
		repeats []simulation.Repeat
		want    bool
	}{
		{"no repeats", nil, false},
		{"a repeat", []simulation.Repeat{explained}, true},
		{"one without an excuse", []simulation.Repeat{explained, unexplained}, false},
	} {
		var b bytes.Buffer
		if err := printResult(&b, &simulation.Result{Repeats: test.repeats}, &simulation.Result{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), remedy); got != test.want {
			t.Errorf("%s: the remedy is told: %v, want %v", test.name, got, test.want)
		}
	}
}

// wantSums adds up a printed table as a reader would: each = row is the sum of the rows above it, up to the empty line.
func wantSums(t *testing.T, output string) {
	t.Helper()
	var sum [2]int
	sums := 0
	for line := range strings.Lines(output) {
		if len(line) < 48 || !strings.Contains(" +=", line[:1]) {
			sum = [2]int{}
			continue
		}
		for column, text := range []string{line[29:38], line[38:48]} {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				break // a line below the table
			}
			switch {
			case line[0] != '=':
				sum[column] += n
			case sum[column] != n:
				t.Errorf("%q: the rows above add up to %d in column %d", line, sum[column], column+1)
			default:
				sums++
			}
		}
	}
	if sums != 2*4 {
		t.Errorf("%d sums are right, want 4 in each of 2 columns:\n%s", sums, output)
	}
}
