package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/examples/ledger/internal/simulation"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// TestMain is also main of the processes that book and are killed.
func TestMain(m *testing.M) {
	if isWorker, code := simulation.BeWorker(); isWorker {
		os.Exit(code)
	}
	goleak.VerifyTestMain(dynamotest.StopAfter(m))
}

// command runs the program with the arguments.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// printed returns the number of a row.
func printed(t *testing.T, output, row string) int {
	t.Helper()
	match := regexp.MustCompile(`(?m)^  ` + row + ` +(\d+) `).FindStringSubmatch(output)
	if match == nil {
		t.Fatalf("there is no row %q:\n%s", row, output)
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRun runs it both ways. With the same kills the books balance in one and do not in the other.
func TestRun(t *testing.T) {
	dynamotest.Start(t) // skips, where the program fails
	for _, test := range []struct {
		name, says string
		args       []string
		balances   bool
	}{
		{"with Tx", "The books balance: every transfer was booked once", nil, true},
		{"without", "The books do not balance", []string{"-without-tx"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := command(t, append(test.args, "-transfers", "120", "-kills", "8")...)
			t.Logf("%s", stdout)
			if code != success || stderr != "" {
				t.Fatalf("exit code %d, stderr %q; want success", code, stderr)
			}
			if killed := printed(t, stdout, "of these killed"); killed != 8 {
				t.Errorf("%d processes were killed, want 8", killed)
			}
			debits, credits := printed(t, stdout, "debits booked"), printed(t, stdout, "credits booked")
			wrong := printed(t, stdout, "accounts that are wrong")
			switch {
			case test.balances && (debits != 120 || credits != 120 || wrong != 0):
				t.Errorf("%d debits, %d credits, %d wrong accounts; want 120, 120, 0", debits, credits, wrong)
			case !test.balances && (debits <= 120 || debits <= credits || wrong == 0):
				t.Errorf("%d debits, %d credits, %d wrong accounts; want more than 120, fewer, some", debits, credits, wrong)
			}
			if kept := strings.Contains(stdout, "10000.00 before, 10000.00 after"); kept != test.balances {
				t.Errorf("the money is all there: %t, want %t", kept, test.balances)
			}
			if !strings.Contains(stdout, test.says) {
				t.Errorf("it does not say %q", test.says)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	code, stdout, stderr := command(t, "-h")
	if code != success || stderr != "" {
		t.Errorf("exit code %d, stderr %q; want success", code, stderr)
	}
	for _, flag := range []string{"-without-tx", "-transfers", "-kills", "-seed"} {
		if !strings.Contains(stdout, "\n  "+flag+" ") {
			t.Errorf("help does not explain %s:\n%s", flag, stdout)
		}
	}
}

func TestWrongCommandLine(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-transfers 0", `invalid value "0" for flag -transfers: want a whole number from 1 to 10000`},
		{"-kills 1001", `invalid value "1001" for flag -kills: want a whole number from 0 to 1000`},
		{"-seed -1", `invalid value "-1" for flag -seed`},
		{"-with-tx", "not defined: -with-tx"},
		{"run", `unexpected argument "run"`},
	} {
		code, stdout, stderr := command(t, strings.Fields(test.args)...)
		if code != usage || stdout != "" || !strings.Contains(stderr, test.want) || !strings.Contains(stderr, "-h") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want code %d and %q", test.args, code, stdout, stderr, usage, test.want)
		}
	}
}

// TestNoServer runs it where `make tools` has not run. It says so in one line.
func TestNoServer(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	t.Setenv("ONCEKIT_DYNAMODB_ENDPOINT", "")
	code, stdout, stderr := command(t)
	if code != failure || stdout != "" || strings.Count(stderr, "\n") != 1 ||
		!strings.HasPrefix(stderr, "ledger: ") || !strings.Contains(stderr, "run `make tools`") {
		t.Errorf("exit code %d, stdout %q, stderr %q; want code %d and a line that says what to install",
			code, stdout, stderr, failure)
	}
}
