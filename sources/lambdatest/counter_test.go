package lambdatest_test

import (
	"testing"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestCounters(t *testing.T) {
	for _, test := range []struct {
		counters lambdatest.Counters
		want     string
	}{
		{nil, ""},
		{lambdatest.Counters{{0, "call", "calls"}, {0, "reply", "replies"}}, "0 calls"},
		{lambdatest.Counters{{0, "call", "calls"}, {1, "reply", "replies"}}, "1 reply"},
		{lambdatest.Counters{{2, "call", "calls"}, {1, "reply", "replies"}}, "2 calls, 1 reply"},
	} {
		if got := test.counters.String(); got != test.want {
			t.Errorf("String is %q, want %q", got, test.want)
		}
	}
}
