package sourcetest

import (
	"flag"
	"fmt"
	"testing"
)

// Twice runs all tests of a package twice, for its TestMain: InBulk is true in the second run, and says that the stores of
// the tests take many requests in a call. Benchmarks and fuzzing run once.
type Twice struct {
	*testing.M
	InBulk *bool
}

// Run runs the tests, and returns the code to exit with.
func (t Twice) Run() int {
	code := t.M.Run()
	for _, name := range []string{"test.bench", "test.fuzz", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return code
		}
	}
	fmt.Println("with stores that take many requests in a call:")
	*t.InBulk = true
	return max(code, t.M.Run())
}
