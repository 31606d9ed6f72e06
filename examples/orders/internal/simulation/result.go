package simulation

// Result is what has happened in a simulation.
type Result struct {
	Orders     int // sent
	Duplicates int // second copies of their messages, delivered as well
	Retries    int // deliveries of a message that came back
	Deliveries int // the sum of the three, and of the four that follow

	Runs       int // calls of the handler
	Replays    int // deliveries of what was done before, or by a twin in the same batch
	InProgress int // deliveries of what was, or might have been, in progress
	Unreached  int // deliveries of which none of this is true: something came before the handler

	Crashes     int // invocations that crashed
	Hung        int // handlers that hung until they were given up
	Throttled   int // store calls that were refused
	RepliesLost int // store calls that were applied without anyone knowing

	Charged      int // orders, each counted once
	Charges      int // all that were made
	Repeats      []Repeat
	DeadLettered []DeadLetter
	Lost         []string // orders that were neither charged nor moved to the dead-letter queue
}

// DeadLetter is an order that was moved to the dead-letter queue.
type DeadLetter struct {
	Order string
	// Receives is how many receives it took the queue to move it, and zero if the function moved it itself.
	Receives int
	Err      error // of its last attempt
	Charged  bool  // although it was charged
}

// Uncharged returns how many orders are in the dead-letter queue and were never charged.
func (r *Result) Uncharged() int {
	n := 0
	for _, d := range r.DeadLettered {
		if !d.Charged {
			n++
		}
	}
	return n
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
