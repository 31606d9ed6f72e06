package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
)

// Result is what Do returns of work that is done.
type Result[R any] struct {
	Value R
	// Replayed is whether the work was done before, and Value is what it returned then.
	Replayed bool
	// Unrecorded is whether the work was done now, but the store did not take that: a repeated call after the lease
	// does the work again.
	Unrecorded bool
}

// CallOptions are the options of one call of Do.
type CallOptions struct {
	// Fingerprint is that of the payload. A call with the same key and another fingerprint fails with
	// ErrFingerprintMismatch. Empty means none.
	Fingerprint string
}

// Do calls fn unless its work is done already under key, in which case it returns what fn returned then.
//
// While fn runs, the key is claimed, and fn's context ends a little before the claim does (see Options.Lease) and tells
// of the claim (see FromContext). If fn returns an error, the claim is released and Do returns that error; if the
// release fails too, it returns both, joined, fn's first. If fn panics or calls runtime.Goexit, the claim is released
// on the way.
//
// If fn was not called, the error is one of Guard.Claim. If fn succeeded, the error is nil, even if the store did not
// take the completion (see Result.Unrecorded and Options.FailUnrecorded), unless the claim was lost meanwhile: then it
// is ErrClaimLost, beside fn's value.
//
// R is stored as JSON by encoding/json, and comes back as the same value if it survives that: a value inside an
// interface does not keep its Go type. A result that is not stored, since it is too large or has no JSON, is logged; a
// later call then returns ErrResultNotStored instead of doing the work again. With R struct{} no result is stored.
func Do[R any](ctx context.Context, g *Guard, key string, fn func(context.Context) (R, error),
	optFns ...func(*CallOptions)) (Result[R], error) {
	if g == nil {
		return Result[R]{}, errors.New("idempotency: guard is nil, want one made by New")
	}
	if fn == nil {
		return Result[R]{}, errors.New("idempotency: function is nil, want one that does the work")
	}
	var options CallOptions
	for _, f := range optFns {
		if f != nil {
			f(&options)
		}
	}
	var result Result[R]
	claim, err := g.await(ctx, Request{Key: key, Fingerprint: options.Fingerprint})
	if err != nil {
		return result, err
	}
	if claim.Replayed() {
		result.Replayed = true
		err := decodeResult(claim, &result.Value)
		return result, err
	}
	if result.Value, err = call(ctx, claim, fn); err != nil {
		return Result[R]{}, err
	}
	result.Unrecorded, err = finish(ctx, claim, &result.Value)
	return result, err
}

// call calls fn under the claim, and releases it if fn does not succeed.
func call[R any](ctx context.Context, claim *Claim, fn func(context.Context) (R, error)) (value R, err error) {
	succeeded := false
	defer func() {
		if succeeded {
			return
		}
		// fn has returned, or is being left by a panic or by Goexit: its own deferred functions have run, so nothing of
		// it can run beside the next owner.
		detached, cancel := Detach(ctx)
		defer cancel()
		releaseErr := claim.Release(detached)
		switch {
		case releaseErr == nil:
		case err == nil: // a panic or Goexit: nobody gets the error
			claim.log(ctx, slog.LevelError, "idempotent work has failed and its claim could not be released", releaseErr)
		default:
			err = errors.Join(err, releaseErr)
		}
	}()
	work := ctx
	if deadline := claim.Deadline(); !deadline.IsZero() {
		if end, ok := invocationDeadline(ctx); ok {
			work = WithInvocationDeadline(work, end) // for guarded work inside fn
		}
		limited, cancel := context.WithDeadlineCause(work, deadline, ErrLeaseTooShort)
		defer cancel()
		work = limited
	}
	// Unprotected work gets its claim too, which hides that of guarded work around it.
	value, err = fn(claim.Context(work))
	succeeded = err == nil
	return value, err
}

// finish completes the claim of work that has succeeded.
func finish[R any](ctx context.Context, claim *Claim, value *R) (unrecorded bool, err error) {
	if claim.key == "" {
		return false, nil
	}
	data, encodeErr := encodeResult(value)
	detached, cancel := Detach(ctx)
	defer cancel()
	err = claim.Complete(detached, data)
	if err == nil {
		err = encodeErr // which is ErrResultNotStored
	}
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, ErrResultNotStored):
		claim.log(ctx, slog.LevelWarn, "idempotent result is not stored and cannot be replayed", err)
		return false, nil
	case errors.Is(err, ErrClaimLost):
		return false, err
	case claim.guard.options.FailUnrecorded:
		return true, err
	default:
		claim.log(ctx, slog.LevelError, "idempotent work is done but not recorded as done", err)
		return true, nil
	}
}

// encodeResult returns an error also where a MarshalJSON panics: the work is done, and must be completed.
func encodeResult[R any](value *R) (data []byte, err error) {
	if isVoid[R]() {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			data, err = nil, fmt.Errorf("%w: encoding it panicked: %v", ErrResultNotStored, p)
		}
	}()
	if data, err = json.Marshal(value); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResultNotStored, err)
	}
	return data, nil
}

func decodeResult[R any](claim *Claim, value *R) error {
	if isVoid[R]() {
		return nil
	}
	if claim.data == nil {
		return fmt.Errorf("%w: the work of %q is done, but its result was too large, had no JSON, or was of no use to "+
			"the caller that did it", ErrResultNotStored, claim.name())
	}
	if err := unmarshalResult(claim.data, value); err != nil {
		*value = *new(R) // nothing of it, rather than a part
		return fmt.Errorf("idempotency: the work of %q is done, but its stored result is no %v: %w",
			claim.name(), reflect.TypeFor[R](), err)
	}
	return nil
}

// unmarshalResult returns an error also where an UnmarshalJSON panics.
func unmarshalResult(data []byte, value any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding it panicked: %v", p)
		}
	}()
	return json.Unmarshal(data, value)
}

// isVoid reports whether R has no value worth storing.
func isVoid[R any]() bool { return reflect.TypeFor[R]() == reflect.TypeFor[struct{}]() }

// Wrap returns fn as a function that does its work once for each key: the key function gives the key of an input, and a
// replay returns the stored output. It is Do for a handler of one event, as lambda.Start takes it. An error of the key
// function is returned as it is, and fn does not run. Wrap panics if an argument is nil.
func Wrap[In, Out any](g *Guard, key func(In) (string, error), fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	switch {
	case g == nil:
		panic("idempotency: Wrap: guard is nil")
	case key == nil:
		panic("idempotency: Wrap: key function is nil")
	case fn == nil:
		panic("idempotency: Wrap: function is nil")
	}
	return func(ctx context.Context, in In) (Out, error) {
		k, err := key(in)
		if err != nil {
			var zero Out
			return zero, err
		}
		result, err := Do(ctx, g, k, func(ctx context.Context) (Out, error) { return fn(ctx, in) })
		return result.Value, err
	}
}
