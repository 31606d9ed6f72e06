package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/clicks/internal/simulation"
	"github.com/oncekit/oncekit/examples/internal/report"
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
		"400 clicks, seed 5, ", "\n                               oncekit  loop goes on  loop stops\n",
		"\nmoved to the dead-letter queue: 1\n  click-", "journey was not stored (started 4 times)\n",
		"\nrepeated: ", "a crash fell between append and completion (appended by delivery ", "\nout of order: 0\n", "\nlost: 0\n",
	} {
		if !strings.Contains(outputs[0], want) {
			t.Errorf("output has no %q:\n%s", want, outputs[0])
		}
	}
	if !strings.HasSuffix(outputs[0], "\n\n"+remedy) {
		t.Errorf("output does not end with the remedy:\n%s", outputs[0])
	}
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var stdout, stderr bytes.Buffer
		if code := run(ctx, nil, &stdout, &stderr); code != failure || strings.Contains(stdout.String(), "lost") {
			t.Errorf("exit code %d, want %d and no table:\n%s", code, failure, stdout.String())
		}
		time.Sleep(5 * time.Second) // for what the end of the run has let go
	})
}

// TestVerdict is the exit code: a run in which the guard broke its word is a failure.
func TestVerdict(t *testing.T) {
	explained := simulation.Repeat{Click: "click-0001", Cause: "a crash"}
	for _, test := range []struct {
		name   string
		result simulation.Result
		want   string
	}{
		{"nothing", simulation.Result{}, ""},
		{"explained", simulation.Result{Repeats: []simulation.Repeat{explained}}, ""},
		{"lost", simulation.Result{Lost: []string{"click-0007", "click-0009"}}, "2 clicks were lost: click-0007, click-0009"},
		{"out of order", simulation.Result{OutOfOrder: []string{"x"}}, "1 click was out of order"},
		{"out of order when redelivered", simulation.Result{RedeliveredOutOfOrder: 2}, "2 clicks were out of order"},
		{
			"unexplained", simulation.Result{Repeats: []simulation.Repeat{explained, {Unexplained: true}}},
			"1 click was repeated without a reason",
		},
		{"redelivered", simulation.Result{Redelivered: 3}, "3 clicks were repeated without a reason"},
		{
			"all of it", simulation.Result{Lost: []string{"click-0007"}, OutOfOrder: []string{"x"}, Redelivered: 1},
			"1 click was lost: click-0007\n1 click was out of order\n1 click was repeated without a reason",
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
	var out bytes.Buffer
	s := &status{progress: report.NewProgress(&out), clicks: maxClicks, appended: make([]int, len(readers))}
	for _, told := range []int{9_000, 10_000, 9_999} { // two shards can be told of in either order
		s.show(0, told)
	}
	if got, want := s.line(), "of 10000 clicks: oncekit 10000, loop goes on 0, loop stops 0"; got != want {
		t.Errorf("status is %q, want %q", got, want)
	}
	s.show(1, maxClicks)
	s.show(2, maxClicks)
	if line := s.line(); len(line) >= 80 {
		t.Errorf("%q has %d characters, and a terminal may have 80", line, len(line))
	}
	if out.Len() > 0 {
		t.Errorf("output is %q, want nothing where there is no terminal", out.String())
	}
}

// TestReadme holds the output in the README to the program's.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "\n```text\n")
	sample, _, _ := strings.Cut(rest, "```\n")
	synctest.Test(t, func(t *testing.T) {
		_, stdout, _ := program(t)
		time.Sleep(5 * time.Second) // for what the end of the run has let go
		if diff := cmp.Diff(stdout, sample); diff != "" {
			t.Errorf("output (-program +README.md):\n%s", diff)
		}
	})
}
