package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.StopAfter(m).Run()) }

// program runs the program with the arguments.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	code, stdout, stderr := program(t, "-h")
	if code != success || stderr != "" {
		t.Errorf("exit code %d, stderr %q; want success", code, stderr)
	}
	for _, want := range []string{
		"\n  -orders ", "\n  -seed ", fmt.Sprintf("are placed, 1 to %d (default 40)", maxOrders),
		fmt.Sprintf("0 to %d (default %d)", uint64(math.MaxUint64), defaultSeed),
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("help does not say %q:\n%s", want, stdout)
		}
	}
}

func TestWrongCommandLine(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // in the message
	}{
		{"-orders 0", "from 1 to"}, {"-orders 401", "from 1 to 400"}, {"-orders x", "whole number"},
		{"-seed -1", "from 0 to"}, {"-table x", "-table"}, {"40", `unexpected argument "40"`},
	} {
		t.Run(test.args, func(t *testing.T) {
			code, stdout, stderr := program(t, strings.Fields(test.args)...)
			if code != usage || stdout != "" || !strings.Contains(stderr, test.want) || !strings.Contains(stderr, "-h") {
				t.Errorf("exit code %d, stdout %q, stderr %q; want code %d and %q", code, stdout, stderr, usage, test.want)
			}
		})
	}
}

// letGo gives the goroutines of dead invocations, which the end of a run lets go, the time to end.
func letGo() { time.Sleep(5 * time.Second) }

// TestSameSeedSameTable runs the whole program twice, in no time.
func TestSameSeedSameTable(t *testing.T) {
	var outputs []string
	for _, seed := range []string{"10", "10", "11"} {
		synctest.Test(t, func(t *testing.T) {
			code, stdout, stderr := program(t, "-seed", seed)
			letGo()
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
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		var stdout, stderr bytes.Buffer
		if code := run(ctx, nil, &stdout, &stderr); code != failure || strings.Contains(stdout.String(), "lost") {
			t.Errorf("exit code %d, want %d and no table:\n%s", code, failure, stdout.String())
		}
		letGo()
	})
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
		letGo()
		if diff := cmp.Diff(stdout, sample); diff != "" {
			t.Errorf("output (-program +README.md):\n%s", diff)
		}
	})
}
