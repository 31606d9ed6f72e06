package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// ResultStore keeps results outside of the guard's store: in S3, say. It is safe for concurrent use.
type ResultStore interface {
	// Put keeps a result and returns a reference to it for Get: UTF-8, not empty, and short enough for the guard's store.
	//
	// It is called after the work and before its completion, so that no completion refers to what was never kept. If the
	// completion then fails, or the process dies before it, nothing refers to the result, and nobody deletes it: let what
	// is kept expire. ctx leaves time to complete: it ends after half of what is left of the lease, or of the invocation
	// if that is less, but not within a second. If Put returns an error, or panics, the work is recorded as done without
	// its result.
	Put(ctx context.Context, r PutRequest) (reference string, err error)

	// Get returns the result that a reference is to, as Put got it. It returns ErrResultNotStored if it is gone.
	Get(ctx context.Context, reference string) ([]byte, error)
}

// PutRequest is a result to keep.
type PutRequest struct {
	// Key is the key as it is stored: the namespace is part of it. It may have any character, and has up to
	// MaxKeyLength bytes.
	Key string
	// Owner is the token of the claim: letters and digits. It has to be part of what the result is
	// kept under. The work of one key can have two results, if one worker has lost its claim to another, and the one must
	// not take the place of the other.
	Owner string
	// Expiry is when the result is needed no more. It is no earlier than the expiry of the completion.
	Expiry time.Time
	// Data is the result: JSON in UTF-8, not compressed. Put may keep the slice, and must not change it.
	Data []byte
}

// put keeps data in the ResultStore, and returns what the guard's store keeps in its place.
func (c *Claim) put(ctx context.Context, data []byte) ([]byte, error) {
	left := settleLimit
	if !c.end.IsZero() {
		left = time.Until(c.end)
	}
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	r := PutRequest{Key: c.key, Owner: c.owner, Data: data, Expiry: c.resultExpiry(ctx)}
	// Half of the time, and no more: without its result the work is done; without its completion it is done again.
	ctx, cancel := context.WithTimeout(ctx, max(left/2, settleFloor/2))
	defer cancel()
	var reference string
	err := recovered("putting it elsewhere", func() (err error) {
		reference, err = c.guard.options.Results.Store.Put(ctx, r)
		return err
	})
	switch {
	case err != nil:
	case reference == "":
		err = errors.New("the reference to it is empty, want one")
	case !utf8.ValidString(reference):
		err = fmt.Errorf("the reference to it is %q, want valid UTF-8", reference)
	default:
		return mark(markReference, reference)
	}
	return nil, fmt.Errorf("%w: its %d bytes were to be kept elsewhere: %w", ErrResultNotStored, len(data), err)
}

// resultExpiry is the latest expiry that a completion on ctx can have.
func (c *Claim) resultExpiry(ctx context.Context) time.Time {
	end := c.guard.now()
	if deadline, ok := ctx.Deadline(); ok {
		end = end.Add(max(time.Until(deadline), 0))
	}
	return ceilSecond(end.Add(c.expiry()))
}

// get returns what was put.
func (c *Claim) get(ctx context.Context, reference string) (data []byte, err error) {
	store := c.guard.options.Results.Store
	if store == nil {
		return nil, &ResultNotStoredError{Key: c.name(), Reference: reference}
	}
	err = recovered("getting it from elsewhere", func() (err error) {
		data, err = store.Get(ctx, reference)
		return err
	})
	switch {
	case errors.Is(err, ErrResultNotStored):
		return nil, &ResultNotStoredError{Key: c.name(), Reference: reference, Err: err}
	case err != nil:
		return nil, fmt.Errorf("idempotency: the work of %q is done, but its result at %q could not be had: %w",
			c.name(), reference, err)
	}
	return data, nil
}
