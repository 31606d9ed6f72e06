package lambdatest

import "time"

// Wait waits for a change or for the next moment, unless that is zero, and reports whether done came first. It is how
// the poller of a kit waits: done is the end of its context, and changed is closed when the queue or stream that it polls
// has changed.
func Wait(done, changed <-chan struct{}, next time.Time) bool {
	var alarm <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-done:
		return true
	case <-changed:
	case <-alarm:
	}
	return false
}
