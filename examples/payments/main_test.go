package main

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/brokenstore"
	"github.com/oncekit/oncekit/examples/payments/internal/simulation"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.StopAfter(m).Run()) }

// program runs the program with the arguments and this store, in no time.
func program(t *testing.T, store idempotency.Store, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		code = run(t.Context(), args, store, &out, &errs)
		letGo()
	})
	return code, out.String(), errs.String()
}

// letGo gives the goroutines of dead invocations, which the end of a run lets go, the time that their last tries to reach
// the store take.
func letGo() { time.Sleep(5 * time.Second) }

func TestHelp(t *testing.T) {
	code, stdout, stderr := program(t, idempotency.NewMemoryStore(), "-h")
	if code != success || stderr != "" || stdout != help {
		t.Errorf("exit code %d, stdout %q, stderr %q; want success and the help", code, stdout, stderr)
	}
}

func TestWrongCommandLine(t *testing.T) {
	for args, want := range map[string]string{"-seed 1": "-seed", "33": `unexpected argument "33"`} {
		code, stdout, stderr := program(t, idempotency.NewMemoryStore(), strings.Fields(args)...)
		if code != usage || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "-h") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want code %d and %q", args, code, stdout, stderr, usage, want)
		}
	}
}

// TestSampleInREADME holds the README's output to what the program prints, each time.
func TestSampleInREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(string(text), "```text\n")
	sample, _, found := strings.Cut(sample, "```\n")
	if !found {
		t.Fatal("README.md has no sample")
	}
	for range 3 {
		code, stdout, stderr := program(t, idempotency.NewMemoryStore())
		if code != success || stderr != "" {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		if diff := cmp.Diff(stdout, sample); diff != "" {
			t.Fatalf("sample (-printed +README.md):\n%s", diff)
		}
		wantSums(t, stdout)
		if !strings.HasSuffix(stdout, "\n\n"+remedy) {
			t.Errorf("output does not end with the remedy:\n%s", stdout)
		}
	}
}

// TestRealTime is the only test that takes as long as the program does. What a busy machine may change in its output is no
// failure.
func TestRealTime(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), nil, idempotency.NewMemoryStore(), &stdout, &stderr); code != success {
		t.Errorf("exit code %d, stderr %q", code, &stderr)
	}
	wantSums(t, stdout.String())
}

func TestBrokenGuard(t *testing.T) {
	for _, test := range []struct {
		store idempotency.Store
		want  string
	}{
		{&brokenstore.Forgetful{}, "charges were repeated without a reason"},
		{&brokenstore.Hasty{}, "payments were lost: payment-01, payment-02"},
	} {
		code, stdout, stderr := program(t, test.store)
		if code != failure || !strings.Contains(stderr, test.want) || strings.Contains(stdout, remedy) {
			t.Errorf("%T: exit code %d, stderr %q; want code %d, %q and no remedy:\n%s",
				test.store, code, stderr, failure, test.want, stdout)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		result simulation.Result
		want   string
	}{
		{simulation.Result{Repeats: []simulation.Repeat{{}}}, ""}, // with a reason
		{simulation.Result{Repeats: []simulation.Repeat{{Unexplained: true}}}, "1 charge was repeated without a reason"},
		{simulation.Result{Lost: []string{"a"}}, "1 payment was lost: a"},
		{simulation.Result{Unanswered: []string{"a", "b"}}, "2 payments were not answered: a, b"},
		{simulation.Result{Wrong: []string{"a"}}, "1 payment was answered wrongly: a"},
	} {
		got := ""
		if err := verdict(&test.result); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("verdict on %+v is %q, want %q", test.result, got, test.want)
		}
	}
}

// TestRemedy is told only where it is one.
func TestRemedy(t *testing.T) {
	for _, test := range []struct {
		name   string
		repeat simulation.Repeat
		want   bool
	}{
		{"with the same key", simulation.Repeat{Key: "k"}, true},
		{"with another key", simulation.Repeat{}, false},
		{"without a reason", simulation.Repeat{Key: "k", Unexplained: true}, false},
	} {
		var b bytes.Buffer
		result := &simulation.Result{Repeats: []simulation.Repeat{test.repeat}}
		if err := printResult(&b, result, &simulation.Result{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), remedy); got != test.want {
			t.Errorf("%s: the remedy is told: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var stdout, stderr bytes.Buffer
		code := run(ctx, nil, idempotency.NewMemoryStore(), &stdout, &stderr)
		if code != failure || strings.Contains(stdout.String(), "charges") {
			t.Errorf("exit code %d, want %d and no table:\n%s", code, failure, &stdout)
		}
		letGo()
	})
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
