package idempotency

import (
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
		return fmt.Errorf("%w: the work of %q is done, but its result is no %v: %w",
			ErrResultInvalid, claim.name(), reflect.TypeFor[R](), err)
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
