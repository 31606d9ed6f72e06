package stream

import (
	"math"
	"strconv"
	"time"
)

// maxEpoch is the year 10000 in seconds since 1970, which Go cannot print as RFC 3339.
const maxEpoch = 253402300800

// Time returns the time of a JSON number of seconds since 1970, whole or not, to the microsecond, which is what a float64
// of today's seconds can tell. It is the zero time for anything that cannot be when a record was made.
func Time(value string) time.Time {
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil || !(seconds > 0 && seconds < maxEpoch) {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(seconds * 1e6)))
}
