package lambdatest

import (
	"fmt"
	"time"
)

// An Ending is how an invocation ended.
type Ending int

const (
	// Answered: the handler returned without an error. What the answer says is for the kit to read.
	Answered Ending = iota + 1
	// FunctionError: the handler returned an error, or an answer of more than MaxPayload bytes.
	FunctionError
	// Panicked: the handler panicked, or called runtime.Goexit. On Lambda the process exits.
	Panicked
	// Crashed: FunctionOptions.Crash said so, or Crash was called.
	Crashed
	// TimedOut: FunctionOptions.Timeout passed.
	TimedOut
)

// String returns the ending in lower case words, such as "timed out".
func (e Ending) String() string {
	switch e {
	case Answered:
		return "answered"
	case FunctionError:
		return "function error"
	case Panicked:
		return "panicked"
	case Crashed:
		return "crashed"
	case TimedOut:
		return "timed out"
	default:
		return fmt.Sprintf("Ending(%d)", int(e))
	}
}

// Result is one invocation that has ended.
type Result struct {
	// Invocation counts the function's invocations, from 1.
	Invocation int
	// Started and Ended are the times of both. They differ by less than FunctionOptions.Timeout unless the invocation
	// timed out.
	Started, Ended time.Time
	// Ending is how it ended.
	Ending Ending
	// Response is the answer's bytes, nil unless Ending is Answered. They are the receiver's.
	Response []byte
	// Err is the handler's error, or its panic with the stack, or what is said of an answer that is too large. It is nil
	// for an answer, a crash and a timeout.
	Err error
}
