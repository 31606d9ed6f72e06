package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// event is a line of go test -json; `go doc cmd/test2json` explains its members.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string // empty in an event of the package
	Output     string
}

// name identifies a test among all packages, or a package if test is empty.
type name struct{ pkg, test string }

func (n name) String() string {
	if n.test == "" {
		return n.pkg
	}
	return n.pkg + " " + n.test
}

// report holds what was read so far.
type report struct {
	out    io.Writer
	output map[name][]string // of tests and packages that have not ended

	passed   int
	failed   []name
	skipped  []name
	reasons  map[name]string // the output of skipped tests
	packages int
	bad      bool // a package failed, be it without a failed test: it did not compile, or its process died
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[name][]string{}, reasons: map[name]string{}}
}

// read consumes the events. A line that is no event is printed as it is, since it is something that someone said.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				r.add(e)
			} else {
				fmt.Fprintf(r.out, "%s\n", strings.TrimSuffix(string(line), "\n"))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the events: %w", err)
		}
	}
}

func (r *report) add(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[n] = append(r.output[n], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(n, e.Action)
		} else {
			r.endTest(n, e.Action)
		}
	}
}

func (r *report) endTest(n name, action string) {
	output := r.output[n]
	delete(r.output, n)
	switch action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped = append(r.skipped, n)
		r.reasons[n] = reason(output)
	case "fail":
		r.failed = append(r.failed, n)
		r.print(output)
	}
}

// endPackage prints the package's own lines: the result, and on failure what else there is. A test that was running
// when the process died has not ended; its output is the cause.
func (r *report) endPackage(n name, action string) {
	if action != "skip" { // the package has no test files
		r.packages++
	}
	if action == "fail" {
		r.bad = true
		for running, output := range r.output {
			if running.pkg == n.pkg && running.test != "" {
				r.failed = append(r.failed, running)
				r.print(output)
				delete(r.output, running)
			}
		}
		r.print(r.output[n])
	} else {
		for _, line := range r.output[n] {
			if strings.HasPrefix(line, "ok ") || strings.Contains(line, "[no test") {
				fmt.Fprint(r.out, line)
			}
		}
	}
	delete(r.output, n)
}

// print prints output without the lines that only say that a test goes on.
func (r *report) print(output []string) {
	for _, line := range output {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(r.out, line)
		}
	}
}

// reason returns what a skipped test printed, on one line.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- SKIP") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

// finish prints the skipped and the failed tests and the counts, and reports whether all is well.
func (r *report) finish(ci bool) bool {
	for _, n := range r.skipped {
		fmt.Fprintf(r.out, "skipped: %s: %s\n", n, r.reasons[n])
	}
	for _, n := range r.failed {
		fmt.Fprintf(r.out, "failed: %s\n", n)
	}
	fmt.Fprintf(r.out, "%d tests passed, %d failed, %d skipped, in %d packages\n",
		r.passed, len(r.failed), len(r.skipped), r.packages)
	switch {
	case r.bad || len(r.failed) > 0:
		return false
	case r.passed == 0:
		fmt.Fprintln(r.out, "no test ran")
		return false
	case ci && len(r.skipped) > 0:
		fmt.Fprintln(r.out, "a skipped test is a failure where CI=true")
		return false
	}
	return true
}
