package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/orders/internal/simulation"
)

// TestSameSeedSameTable runs the whole program twice, in no time.
func TestSameSeedSameTable(t *testing.T) {
	var outputs []string
	for _, seed := range []string{"5", "5", "6"} {
		synctest.Test(t, func(t *testing.T) {
			code, stdout, stderr := program(t, "-seed", seed)
			time.Sleep(5 * time.Second) // for what the end of the run has let go
			if code != success || stderr != "" {
				t.Fatalf("exit code %d, stderr %q", code, stderr)
			}
			outputs = append(outputs, stdout)
		})
	}
	if diff := cmp.Diff(outputs[0], outputs[1]); diff != "" {
		t.Errorf("output (-first run +second run):\n%s", diff)
	}
	if outputs[0] == outputs[2] {
		t.Errorf("two seeds have the same output:\n%s", outputs[0])
	}
	for _, want := range []string{
		"200 orders, seed 5, idempotency records in memory. This takes about 10 seconds.\n", "\nround 1: ",
		" in the dead-letter queue, 2 on the way\n", "\n  orders sent                      200       200   ",
		"\nrepeated: ", "\nlost: 0\n", "a crash fell between charge and completion", "(by the queue after 5 receives)\n",
		"(by the function)\n",
	} {
		if !strings.Contains(outputs[0], want) {
			t.Errorf("output has no %q:\n%s", want, outputs[0])
		}
	}
	if !strings.HasSuffix(outputs[0], "\n\n"+remedy) {
		t.Errorf("output does not end with the remedy:\n%s", outputs[0])
	}
	for _, output := range outputs {
		wantSums(t, output)
	}
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var stdout, stderr bytes.Buffer
		if code := run(ctx, nil, &stdout, &stderr); code != failure || strings.Contains(stdout.String(), "lost:") {
			t.Errorf("exit code %d, want %d and no table:\n%s", code, failure, stdout.String())
		}
		time.Sleep(5 * time.Second) // for what the end of the run has let go
	})
}

// TestVerdict is the exit code: a run in which the guard broke its word is a failure.
func TestVerdict(t *testing.T) {
	explained := simulation.Repeat{Order: "order-0001", Cause: "a crash"}
	for _, test := range []struct {
		name   string
		result simulation.Result
		want   string
	}{
		{"nothing", simulation.Result{}, ""},
		{"explained", simulation.Result{Repeats: []simulation.Repeat{explained}}, ""},
		{"one is lost", simulation.Result{Lost: []string{"order-0007"}}, "1 order was lost: order-0007"},
		{"lost", simulation.Result{Lost: []string{"order-0007", "order-0009"}}, "2 orders were lost: order-0007, order-0009"},
		{
			"unexplained", simulation.Result{Repeats: []simulation.Repeat{explained, {Unexplained: true}}},
			"1 charge was repeated without a reason",
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

func TestStatus(t *testing.T) {
	for _, test := range []struct {
		now  simulation.Progress
		want string
	}{
		{
			simulation.Progress{Round: 1, Deliveries: 212, Crashes: 5, Orders: 200, Charged: 159},
			"round 1: 212 deliveries so far, 159 of 200 orders charged, 5 crashes",
		},
		{
			simulation.Progress{Round: 1, Deliveries: 1, Crashes: 1, Orders: 1},
			"round 1: 1 delivery so far, 0 of 1 order charged, 1 crash",
		},
		{
			simulation.Progress{Round: 2, Deliveries: 9, Orders: 5, Charged: 5, Hopeless: true},
			"round 2: 9 deliveries so far, 5 of 5 orders charged, 0 crashes",
		},
		{
			simulation.Progress{Round: 3, Deliveries: 250, Orders: 200, Charged: 195, DeadLettered: 2},
			"round 3: 250 deliveries so far, 195 of 200 orders charged, 0 crashes",
		},
		{
			simulation.Progress{Round: 4, Orders: 200, Charged: 196, DeadLettered: 1, Hopeless: true},
			"round 4: 196 of 200 charged, 1 in the dead-letter queue, 3 on the way",
		},
		{
			simulation.Progress{Round: 6, Orders: 200, Charged: 196, DeadLettered: 4, Hopeless: true},
			"round 6: 196 of 200 charged, 4 in the dead-letter queue",
		},
	} {
		if got := status(test.now); got != test.want {
			t.Errorf("status is %q, want %q", got, test.want)
		}
	}
}

// TestStatusFits takes the longest lines there are.
func TestStatusFits(t *testing.T) {
	for _, hopeless := range []bool{false, true} {
		now := simulation.Progress{
			Round: 6, Deliveries: 15_000, Crashes: 300, Orders: maxOrders, Charged: 9_600, DeadLettered: 200, Hopeless: hopeless,
		}
		if line := status(now); len(line) >= 80 {
			t.Errorf("%q has %d characters, and a terminal may have 80", line, len(line))
		}
	}
}
