package shardtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Window is the tumbling window of an invocation.
type Window struct {
	// Start and End are its limits; End is the first moment after it.
	Start, End time.Time
	// State is what the function was given, as JSON.
	State string
	// Final is isFinalInvokeForWindow: the function is to do what the window is for.
	Final bool
	// TerminatedEarly is isWindowTerminatedEarly: the state has become too large. The records of the window that follow
	// begin with a fresh state.
	TerminatedEarly bool
}

const (
	// maxState is how large a state can become before its window is terminated early, 1 MB
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-windows.html).
	maxState = 1 << 20

	// windowDelay is how long after a window's end the mapping waits for records of it, if no later ones have come. AWS
	// says: up to 2 minutes (same page).
	windowDelay = 2 * time.Minute

	freshState = "{}"
)

// window is a tumbling window in work.
type window struct {
	start, end time.Time
	state      string
	used       bool // was delivered records since its state was fresh, so that there must be a final invocation
	early      bool // the next final invocation is one because the state has become too large
}

// newWindow returns the window of a record.
func newWindow(arrivedAt time.Time, length time.Duration) *window {
	start := arrivedAt.UTC().Add(-time.Duration(arrivedAt.UnixNano() % int64(length)))
	return &window{start: start, end: start.Add(length), state: freshState}
}

func (w *window) holds(arrivedAt time.Time) bool {
	return !arrivedAt.Before(w.start) && arrivedAt.Before(w.end)
}

// size returns how much of a payload is the window's state.
func (w *window) size() int {
	if w == nil {
		return 0
	}
	return len(w.state)
}

// over reports whether all records of the lane's window are read and no more can come: a later one has come, the shard
// has ended, or it is long enough after the window's end. The caller holds s.mu.
func (s *Stream[R]) over(l *lane[R], now time.Time) bool {
	if unread := l.unread(); len(unread) > 0 {
		return !l.window.holds(unread[0].ArrivedAt)
	}
	return l.shard.closed || !now.Before(l.window.end.Add(windowDelay))
}

// finish returns the final invocation of the lane's window, if that is over, which then has no records. Otherwise next
// is when it can be over at the latest. The caller holds s.mu.
func (s *Stream[R]) finish(l *lane[R], now time.Time) (b *batch[R], next time.Time) {
	switch {
	case l.window == nil:
		return nil, time.Time{}
	case !s.over(l, now):
		return nil, l.window.end.Add(windowDelay)
	case !l.window.used:
		// Terminated early, and nothing has come since.
		l.window = nil
		return s.read(l, now)
	}
	return &batch[R]{final: true}, time.Time{}
}

// show returns the window as an invocation with the batch has it.
func (w *window) show(final bool) *Window {
	if w == nil {
		return nil
	}
	return &Window{Start: w.start, End: w.end, State: w.state, Final: final, TerminatedEarly: w.early}
}

// appendTo appends the members of an event that are about its window.
func (w *Window) appendTo(payload []byte, shardID, arn string) []byte {
	return fmt.Appendf(payload, `,"window":{"start":%q,"end":%q},"state":%s,"shardId":%q,"eventSourceARN":%q,`+
		`"isFinalInvokeForWindow":%s,"isWindowTerminatedEarly":%s`,
		w.Start.Format(time.RFC3339), w.End.Format(time.RFC3339), w.State, shardID, arn,
		strconv.FormatBool(w.Final), strconv.FormatBool(w.TerminatedEarly))
}

// readState returns the state of an answer. Without an object as its state, an answer is the failure of its invocation
// (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-windows.html).
func readState(response []byte) (string, error) {
	// A map, since the field of a struct would take keys of another case too.
	var answer, state map[string]json.RawMessage
	_ = json.Unmarshal(response, &answer) // what is no object has no state either
	raw, ok := answer["state"]
	if !ok {
		return "", fmt.Errorf("answer is %.100q, but must have a state, since there is a tumbling window", response)
	}
	if err := json.Unmarshal(raw, &state); err != nil || state == nil {
		return "", fmt.Errorf("state is %.100q, but must be an object", raw)
	}
	return string(raw), nil
}
