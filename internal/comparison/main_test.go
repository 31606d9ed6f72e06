package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestMain(m *testing.M) {
	// The processes that the tests start are this binary too.
	if isClient, status := beClient(); isClient {
		os.Exit(status)
	}
	goleak.VerifyTestMain(dynamotest.StopAfter(m))
}

func TestParseFlagsRefuses(t *testing.T) {
	for _, test := range []struct{ flag, want string }{
		{"-sizes=10,x", "comparison: -sizes is 10,x, want numbers from 1 to 10,000, with commas between them"},
		{"-sizes=10001", "comparison: -sizes is 10001, want numbers from 1 to 10,000, with commas between them"},
		{"-latencies=4", "comparison: -latencies is 4, want durations such as 4ms, with commas between them"},
		{"-rounds=0", "comparison: -rounds is 0, want at least 1"},
		{"-records=0", "comparison: -records is 0, want at least 1"},
	} {
		var printed strings.Builder
		_, err := parseFlags([]string{test.flag}, &printed)
		if err == nil || err.Error() != test.want || printed.String() != test.want+"\n" {
			t.Errorf("%s: error is %v, and printed is %q; want %s", test.flag, err, printed.String(), test.want)
		}
	}
	c, err := parseFlags(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{10, 100, 1000, 10_000}, c.sizes); diff != "" {
		t.Errorf("sizes without flags (-want +got):\n%s", diff)
	}
}
