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
		"\n  -orders ", "\n  -seed ", fmt.Sprintf("are changed, 1 to %d (default 40)", maxOrders),
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

// TestSameSeedSameTable runs the whole program twice, in no time.
func TestSameSeedSameTable(t *testing.T) {
	var outputs []string
	for _, seed := range []string{"5", "5", "6"} {
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
	for _, want := range []string{
		"40 orders, seed 5. This takes about 5 seconds.\n", "\npart 2: ", "\nrepeated: ", "\nout of order: 0\n", "\nlost: 0\n",
		"a crash fell between row and completion", "the table was throttled and did not take the completion", "(after 3 attempts)\n",
	} {
		if !strings.Contains(outputs[0], want) {
			t.Errorf("output has no %q:\n%s", want, outputs[0])
		}
	}
	if !strings.HasSuffix(outputs[0], "\n\n"+remedy) {
		t.Errorf("output does not end with the remedy:\n%s", outputs[0])
	}
}

// letGo gives the goroutines of dead invocations, which the end of a run lets go, the time that their last tries to
// reach the store take. In a bubble that is none.
func letGo() { time.Sleep(5 * time.Second) }

// TestSampleInREADME holds the README's output to what the program prints.
func TestSampleInREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(string(text), "```\n40 orders")
	sample, _, found := strings.Cut("40 orders"+sample, "```\n")
	if !found {
		t.Fatal("README.md has no sample")
	}
	synctest.Test(t, func(t *testing.T) {
		_, stdout, _ := program(t)
		letGo()
		if diff := cmp.Diff(stdout, sample); diff != "" {
			t.Errorf("sample (-printed +README.md):\n%s", diff)
		}
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var stdout, stderr bytes.Buffer
		if code := run(ctx, nil, &stdout, &stderr); code != failure || strings.Contains(stdout.String(), "lost:") {
			t.Errorf("exit code %d, want %d and no table:\n%s", code, failure, stdout.String())
		}
		letGo()
	})
}
