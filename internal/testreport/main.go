// Command testreport reads what go test -json prints from its standard input and prints what people look for: a line a
// package, the whole output of every failed test, every skipped test with its reason, and the counts.
//
// It exits with status 1 if a test or a package failed, if no test ran, or, where the environment variable CI is "true",
// if a test was skipped: a test that is skipped there is a test that nobody runs.
package main

import (
	"fmt"
	"os"
)

func main() {
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.finish(os.Getenv("CI") == "true") {
		os.Exit(1)
	}
}
