package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/kinesalite"
)

func TestMain(m *testing.M) { os.Exit(kinesalite.StopAfter(dynamotest.StopAfter(m)).Run()) }

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
	for _, text := range []string{
		fmt.Sprintf("\n  -clicks N          how many clicks are sent, %d to %d (default 400)", minClicks, maxClicks),
		fmt.Sprintf("\n  -seed N            decides all that is random, 0 to %d (default %d)", uint64(math.MaxUint64), defaultSeed),
	} {
		if !strings.Contains(stdout, text) {
			t.Errorf("help does not say %q:\n%s", text, stdout)
		}
	}
}

func TestWrongCommandLine(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // in the message
	}{
		{"-clicks 99", `invalid value "99" for flag -clicks: want a whole number from 100 to 10000`},
		{"-clicks 10001", `invalid value "10001" for flag -clicks: want a whole number from 100 to 10000`},
		{"-seed -1", `invalid value "-1" for flag -seed: want a whole number from 0 to 18446744073709551615`},
		{"-click 5", "not defined: -click"},
		{"-clicks 500 run", `unexpected argument "run"`},
	} {
		code, stdout, stderr := program(t, strings.Fields(test.args)...)
		if code != usage || stdout != "" || !strings.Contains(stderr, test.want) || !strings.Contains(stderr, "-h") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want code %d and %q",
				test.args, code, stdout, stderr, usage, test.want)
		}
	}
}
