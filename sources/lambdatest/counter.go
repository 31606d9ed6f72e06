package lambdatest

import (
	"fmt"
	"strings"
)

// Counter is a number in the statistics of a kit, with its name: that of one, and that of any other number.
type Counter struct {
	N         int
	One, More string
}

// Counters are those of a queue or stream, the first of which says how much there ever was.
type Counters []Counter

// String returns the counters that are not zero in one line, such as "3 sent, 4 receives", and the first if all are.
func (c Counters) String() string {
	var parts []string
	for _, counter := range c {
		switch {
		case counter.N == 1:
			parts = append(parts, "1 "+counter.One)
		case counter.N != 0:
			parts = append(parts, fmt.Sprintf("%d %s", counter.N, counter.More))
		}
	}
	if len(parts) == 0 && len(c) > 0 {
		return "0 " + c[0].More
	}
	return strings.Join(parts, ", ")
}
