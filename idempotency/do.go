package idempotency

import (
	"context"
	"errors"
	"log/slog"
)

// CallOptions are the options of one call of Do.
type CallOptions struct {
	// Fingerprint is that of the payload. A call with the same key and another fingerprint fails with
	// ErrFingerprintMismatch. It is stored as it is, so it should be a hash. Empty means none.
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
	return do(ctx, g, Request{Key: key, Fingerprint: options.Fingerprint}, fn)
}

func do[R any](ctx context.Context, g *Guard, r Request, fn func(context.Context) (R, error)) (Result[R], error) {
	var result Result[R]
	claim, err := g.await(ctx, r)
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

// finish completes the claim of work that has succeeded.
func finish[R any](ctx context.Context, claim *Claim, value *R) (unrecorded bool, err error) {
	if claim.key == "" {
		return false, nil
	}
	data, notStored := encodeResult(value)
	detached, cancel := Detach(ctx)
	defer cancel()
	err = claim.complete(detached, EventCompleted, data, notStored)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, ErrResultNotStored):
		claim.log(ctx, slog.LevelWarn, "idempotent result is not stored and cannot be replayed",
			slog.String("error", err.Error()))
		return false, nil
	case errors.Is(err, ErrClaimLost):
		return false, err
	case claim.guard.options.FailUnrecorded:
		return true, err
	default:
		claim.log(ctx, slog.LevelError, "idempotent work is done but not recorded as done",
			slog.String("error", err.Error()))
		return true, nil
	}
}
