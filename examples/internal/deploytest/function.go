//go:build unix

// Package deploytest runs the functions of the examples as they are deployed, under the Lambda emulator and with a table on
// a DynamoDB-compatible server.
package deploytest

import (
	"cmp"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/rietest"
)

// Start starts the function in the file bootstrap with this timeout. Its environment has TABLE_NAME, that of a table of
// its own, and what the SDK needs to reach the table; env is added, and counts where both have a variable.
func Start(t *testing.T, bootstrap string, timeout time.Duration, env ...string) *rietest.Function {
	t.Helper()
	endpoint := dynamotest.Start(t)
	env = append([]string{
		"TABLE_NAME=" + dynamotest.Table(t, dynamotest.Client(t)),
		"AWS_ENDPOINT_URL_DYNAMODB=" + endpoint,
		"AWS_REGION=" + cmp.Or(os.Getenv("AWS_REGION"), "us-east-1"),
		"AWS_ACCESS_KEY_ID=" + cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "test"),
		"AWS_SECRET_ACCESS_KEY=" + cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "test"),
		"AWS_SESSION_TOKEN=" + os.Getenv("AWS_SESSION_TOKEN"),
	}, env...) // of two values of a variable the last one counts
	return rietest.Start(t, bootstrap, func(o *rietest.Options) { o.Timeout, o.Env = timeout, env })
}

// Logged returns how often the function has logged each value of what, such as "charged order=", up to now. It waits for
// the value last, which the function logs last: what it prints takes a moment to get here, but gets here in order. Values
// that begin with the prefix lasts are left out.
func Logged(t *testing.T, f *rietest.Function, what, last, lasts string) map[string]int {
	t.Helper()
	for {
		counts, found := make(map[string]int), false
		for line := range strings.Lines(f.Logs()) {
			if _, rest, ok := strings.Cut(line, what); ok {
				value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
				found = found || value == last
				if !strings.HasPrefix(value, lasts) {
					counts[value]++
				}
			}
		}
		if found {
			return counts
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("%s%s was not logged", what, last)
		}
	}
}
