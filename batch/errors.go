package batch

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrDeadlineNear is the error of a record that was not started, and the cause of a cancelled handler's context,
	// when only Options.Reserve was left of the batch's time.
	ErrDeadlineNear = errors.New("batch: deadline is near")

	// ErrOrder is the error of a record that was not started because a record before it failed: one of its lane, or
	// any where Options.StopOnFailure is set.
	ErrOrder = errors.New("batch: an earlier record failed")

	// ErrAbandoned is the error of a record whose handler, or what follows it, was still at work when the answer had to go.
	ErrAbandoned = errors.New("batch: record was still at work when the answer had to go")

	// ErrTimeout is the cause of a handler's context that was cancelled after Options.Timeout.
	ErrTimeout = errors.New("batch: handler timeout")
)

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks err as final: the record will never succeed, however often it is tried. With Options.DeadLetter such
// a record goes to the sink; without, it is Failed like any other. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err, or an error that it wraps, was made by Permanent.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

type retryError struct {
	err   error
	delay time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// RetryAfter marks err as one that trying again before delay has passed will not mend. Sources that can postpone a
// single record do so; the others deliver it again when they would anyway. A negative delay counts as zero.
// RetryAfter(delay, nil) is nil.
func RetryAfter(delay time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryError{err, max(delay, 0)}
}

// RetryDelay returns the delay of the outermost RetryAfter in err, and whether there is one.
func RetryDelay(err error) (delay time.Duration, ok bool) {
	if e, ok := errors.AsType[*retryError](err); ok {
		return e.delay, true
	}
	return 0, false
}

// PanicError is the error of a record whose handler panicked or ended its goroutine by runtime.Goexit.
type PanicError struct {
	// Value is what panic was called with. It is nil after Goexit, and after panic(nil) where the program asks for the
	// old meaning of that (GODEBUG=panicnil=1).
	Value any
	// Stack is the stack at the panic, as printed by runtime/debug. It is empty after Goexit, which leaves none.
	Stack []byte
}

// Error returns the value of the panic, without the stack.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "batch: panic(nil) or runtime.Goexit"
	}
	return fmt.Sprintf("batch: panic: %v", e.Value)
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// sound returns err, or an error that says what it is if its methods panic, as they do when a function returns a nil
// pointer of a type of its own as an error. What looks into an error later, to log it or to find its cause, need not
// fear it then.
func sound(err error) error {
	if behaves(err) {
		return err
	}
	switch e := err.(type) {
	case *permanentError:
		return &permanentError{sound(e.err)} // permanent it stays
	case *retryError:
		return &retryError{sound(e.err), e.delay}
	}
	return fmt.Errorf("an error of type %T whose methods panic", err)
}

// nobody is an error that nobody returns: to look for it is to unwrap all of an error.
type nobody struct{ error }

// behaves looks at an error as the engine does. It does so on a goroutine of its own, which runtime.Goexit in a method
// of the error may end, as t.FailNow does in a fake.
func behaves(err error) bool {
	result := make(chan bool, 1)
	go func() {
		looked := false
		defer func() {
			if !looked {
				_ = recover()
			}
			result <- looked
		}()
		_, _ = errors.AsType[nobody](err)
		_ = err.Error()
		looked = true
	}()
	return <-result
}

// FailedError is the error of a batch in which records failed. See Report.Err.
type FailedError struct {
	Failed, Records int
	// First is the error of the first failed record in input order, and ID its identity.
	First error
	ID    string
}

// Error says how many records failed, and why the first one did.
func (e *FailedError) Error() string {
	id := ""
	if e.ID != "" {
		id = " (" + e.ID + ")"
	}
	return fmt.Sprintf("batch: %d of %d records failed, the first%s: %v", e.Failed, e.Records, id, e.First)
}

// Unwrap returns First.
func (e *FailedError) Unwrap() error { return e.First }
