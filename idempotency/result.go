package idempotency

import (
	"context"
	"encoding/json"
	"fmt"
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

// ResultNotStoredError says that work is done, and that there is no result of it to replay. It matches ErrResultNotStored.
// Do and Wrap return it instead of doing the work again, if nothing loads the result: see LoadWith and WrapOptions.Load.
type ResultNotStoredError struct {
	// Key is the key as it is stored, without the namespace.
	Key string
	// Reference is what ResultStore.Put has returned for the result, if it was kept elsewhere: what it refers to is gone, or
	// the guard has no ResultStore.
	Reference string
	// Err is what ResultStore.Get has returned, or nil.
	Err error
}

// Error names the key, and the reference if there is one.
func (e *ResultNotStoredError) Error() string {
	why := "was too large, had no JSON, or was of no use to the caller that did it"
	switch {
	case e.Err != nil:
		why = fmt.Sprintf("is not to be had at %q: %v", e.Reference, e.Err)
	case e.Reference != "":
		why = fmt.Sprintf("was kept at %q, and Options.Results.Store is nil, want the store that it was put in", e.Reference)
	}
	return fmt.Sprintf("%v: the work of %q is done, but its result %s", ErrResultNotStored, e.Key, why)
}

// Is reports whether target is ErrResultNotStored.
func (e *ResultNotStoredError) Is(target error) bool { return target == ErrResultNotStored }

// Unwrap returns Err.
func (e *ResultNotStoredError) Unwrap() error { return e.Err }

// encodeResult returns an error also where a MarshalJSON panics: the work is done, and must be completed.
func encodeResult[R any](value *R) (data []byte, err error) {
	if isVoid[R]() {
		return nil, nil
	}
	err = recovered("encoding it", func() (err error) {
		data, err = json.Marshal(value)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResultNotStored, err)
	}
	return data, nil
}

func decodeResult[R any](ctx context.Context, claim *Claim, value *R) error {
	if isVoid[R]() {
		return nil
	}
	if claim.data == nil {
		return &ResultNotStoredError{Key: claim.name()}
	}
	data, err := claim.unpack(ctx)
	if err != nil {
		return err
	}
	if err := recovered("decoding it", func() error { return json.Unmarshal(data, value) }); err != nil {
		*value = *new(R) // nothing of it, rather than a part
		return fmt.Errorf("%w: the work of %q is done, but its result is no %v: %w",
			ErrResultInvalid, claim.name(), reflect.TypeFor[R](), err)
	}
	return nil
}

// recovered returns a panic of f as an error: f is the user's, and the work is done.
func recovered(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s panicked: %v", what, p)
		}
	}()
	return f()
}

// isVoid reports whether R has no value worth storing.
func isVoid[R any]() bool { return reflect.TypeFor[R]() == reflect.TypeFor[struct{}]() }
