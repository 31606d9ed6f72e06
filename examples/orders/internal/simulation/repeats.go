package simulation

import "fmt"

// Repeat is an order that was charged once more.
type Repeat struct {
	Order string
	// First and Again are the invocations that charged it.
	First, Again int
	// Cause is what the first charge lacked, so that nobody could know of it: never more than what was seen to happen.
	Cause string
	// Unexplained is whether the guard had no excuse.
	Unexplained bool
}

// String names the order, the cause and the invocations.
func (r Repeat) String() string {
	return fmt.Sprintf("%s: %s (charged by invocation %d, and again by %d)", r.Order, r.Cause, r.First, r.Again)
}
