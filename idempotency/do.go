package idempotency

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// CallOptions are the options of one call of Do.
type CallOptions struct {
	// Fingerprint is that of the payload. A call with the same key and another fingerprint fails with
	// ErrFingerprintMismatch. It is stored as it is, so it should be a hash. Empty means none.
	Fingerprint string

	load any // func(context.Context) (R, error), nil: none
}

// LoadWith is an option of Do that gets the result of work which is done, but whose result is not stored: it was too
// large, had no JSON, or is gone from where it was kept. It reads the result from where the work has left it, and is called
// where Do would return a *ResultNotStoredError. Do returns its value, as Replayed, and its error as it is; hooks are told of
// a replay. That a result is not stored is then not logged. R is that of Do: a call of Do with another one fails, and its work
// does not start. A nil load is none.
func LoadWith[R any](load func(context.Context) (R, error)) func(*CallOptions) {
	return func(o *CallOptions) {
		if o.load = nil; load != nil {
			o.load = load
		}
	}
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
// is ErrClaimLost, beside fn's value. If fn has collected writes in a transaction (see dynamostore.Tx), they are stored together
// with its result or not at all, and the error is ErrTransactionCancelled if they were not, and fn's work is to be tried again,
// or ErrTransactionUndecided.
//
// R is stored as JSON by encoding/json, and comes back as the same value if it survives that: a value inside an
// interface does not keep its Go type. A result that is not stored, since it is too large or has no JSON, is logged; a
// later call then returns a *ResultNotStoredError instead of doing the work again, unless LoadWith says where else the
// result is. With R struct{} no result is stored. Options.Results compresses results, or keeps them elsewhere.
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
	load, ok := options.load.(func(context.Context) (R, error))
	if !ok && options.load != nil {
		return Result[R]{}, fmt.Errorf("idempotency: LoadWith got a %T, want a %T", options.load, load)
	}
	return do(ctx, g, Request{Key: key, Fingerprint: options.Fingerprint}, fn, load)
}

// do is Do. load may be nil.
func do[R any](ctx context.Context, g *Guard, r Request, fn, load func(context.Context) (R, error)) (Result[R], error) {
	var result Result[R]
	claim, err := g.await(ctx, r)
	if err != nil {
		return result, err
	}
	if claim.Replayed() {
		result.Replayed = true
		if err = decodeResult(ctx, claim, &result.Value); load != nil && errors.Is(err, ErrResultNotStored) {
			result.Value, err = load(ctx)
		}
		return result, err
	}
	if result.Value, err = call(ctx, claim, fn); err != nil {
		return Result[R]{}, err
	}
	result.Unrecorded, err = finish(ctx, claim, &result.Value, load != nil)
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
			claim.log(ctx, slog.LevelError, "idempotent work has failed and its claim could not be released",
				slog.String("error", releaseErr.Error()))
		default:
			err = errors.Join(err, releaseErr)
		}
	}()
	work := ctx
	if deadline := claim.Deadline(); !deadline.IsZero() {
		if end, ok := invocationDeadline(ctx); ok {
			work = WithInvocationDeadline(work, end) // for guarded work inside fn
		}
		limited, cancel := context.WithDeadlineCause(work, deadline, ErrLeaseEnding)
		defer cancel()
		work = limited
	}
	// Unprotected work gets its claim too, which hides that of guarded work around it.
	value, err = fn(claim.Context(work))
	succeeded = err == nil
	return value, err
}

// finish completes the claim of work that has succeeded. A result that can be loaded need not be stored.
func finish[R any](ctx context.Context, claim *Claim, value *R, loadable bool) (unrecorded bool, err error) {
	if claim.key == "" {
		return false, nil
	}
	data, notStored := encodeResult(value)
	packed := data
	if data != nil {
		packed, notStored = claim.pack(data)
	}
	detached, cancel := Detach(ctx)
	defer cancel()
	if claim.guard.options.Results.elsewhere(packed) {
		packed, notStored = claim.put(detached, data)
	}
	err = claim.complete(detached, EventCompleted, packed, notStored)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, ErrResultNotStored):
		if !loadable {
			claim.log(ctx, slog.LevelWarn, "idempotent result is not stored and cannot be replayed",
				slog.String("error", err.Error()))
		}
		return false, nil
	case errors.Is(err, ErrClaimLost), errors.Is(err, ErrTransactionCancelled):
		return false, err
	case errors.Is(err, ErrTransactionUndecided):
		return true, err
	case claim.guard.options.FailUnrecorded:
		return true, err
	default:
		claim.log(ctx, slog.LevelError, "idempotent work is done but not recorded as done",
			slog.String("error", err.Error()))
		return true, nil
	}
}
