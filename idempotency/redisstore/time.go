package redisstore

import (
	"strconv"
	"time"
)

// ttlMargin is how much longer than an entry is good the server keeps it. It is for a server's clock that is set while the
// entry lives, and for that of a replica that takes over.
const ttlMargin = time.Minute

// timeToLive returns the milliseconds after which the server may delete an entry that is good until end. It is the
// distance from the caller's now, so that a server whose clock is ahead deletes nothing early.
func timeToLive(now, end time.Time) int64 {
	return max(end.Sub(now), 0).Milliseconds() + ttlMargin.Milliseconds()
}

// endOfSecond returns the end of an expiry: an entry is good to the end of that second.
func endOfSecond(t time.Time) time.Time { return time.Unix(t.Unix()+1, 0) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// freeLease returns what a lease that has run out ended before.
func freeLease(now time.Time, skew time.Duration) string {
	return number(now.UnixMilli() - skew.Milliseconds())
}

func seconds(t time.Time) string      { return number(t.Unix()) }
func milliseconds(t time.Time) string { return number(t.UnixMilli()) }
func number(n int64) string           { return strconv.FormatInt(n, 10) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
