package simulation

// Result is what has happened in a simulation.
type Result struct {
	Orders     int // sent
	Duplicates int // second copies of their messages, delivered as well
	Retries    int // deliveries of a message that came back
	Deliveries int // the sum of the three
	Runs       int // calls of the handler
	Replays    int // deliveries of what was done already
	InProgress int // deliveries of what was, or might have been, in progress
	Abandoned  int // handlers that were given up

	Crashes     int // invocations that crashed
	Throttled   int // store calls that were refused
	RepliesLost int // store calls that were applied without anyone knowing

	Charged      int // orders, each counted once
	Repeats      []Repeat
	DeadLettered []DeadLetter
	Lost         []string // orders that were neither charged nor dead-lettered
}

// DeadLetter is an order that was given up.
type DeadLetter struct {
	Order   string
	Err     error // of its last attempt
	Charged bool  // although it was charged
}

// Unexplained returns how many repeats the guard had no excuse for.
func (r *Result) Unexplained() int {
	n := 0
	for _, repeat := range r.Repeats {
		if repeat.Unexplained {
			n++
		}
	}
	return n
}
