package idempotency

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// WrapOptions are the options of Wrap.
type WrapOptions[In, Out any] struct {
	// Fingerprint returns that of an input, which should be a hash of all that makes it the same work: an input with the
	// same key and another fingerprint fails with ErrFingerprintMismatch, and is not replayed. An empty one is none. An
	// error is returned as it is, and the function does not run. Nil means no fingerprints.
	Fingerprint func(In) (string, error)

	// Load gets the output of work which is done, but whose output is not stored: it was too large, had no JSON, or is gone
	// from where it was kept. It reads the output from where the work has left it. It is called in place of a replay that
	// would return a *ResultNotStoredError; its error is returned as it is, beside its output. That an output is not stored
	// is then not logged. Nil means that the error is returned.
	Load func(context.Context, In) (Out, error)

	// Replayed gets an output that is replayed, and returns what the caller gets in its place: a response with another
	// status, a URL that is signed anew. What is stored stays as it is. It is not called where an output should be stored
	// and is not, unless Load has got it; with Out struct{}, of which nothing is stored, it is called with struct{}{}. Its error is returned as it
	// is, beside its output. Nil means that the output is returned as it was stored.
	Replayed func(context.Context, Out) (Out, error)
}

// Wrap returns fn as a function that does its work once for each key: the key function gives the key of an input, and a
// replay returns the stored output. It is Do for a function of one input, such as those that lambda.Start takes: behind
// API Gateway, as a task of Step Functions, invoked directly. It needs no Lambda.
//
// Only an output that is returned without an error is stored. A response that tells of a failure, such as an HTTP status
// of 500 beside a nil error, is an output like others and is replayed; if it is to be tried again, fn must return an error.
//
// A nil key function makes the key of all of the input: it is PayloadHash of the JSON that encoding/json makes of it. Inputs
// with equal JSON are then the same work, so it is of use only where that is so, and where nothing in the input changes when
// the caller tries again: with a request id or the time of the call in it, every input has another key, and nothing is ever
// replayed. A field that encoding/json leaves out does not count. An input that is null, "", [] or {} as JSON has no key,
// see Options.MissingKey: all such inputs would have one. An input that has no JSON, or a string with broken UTF-8 in it, is
// an error, and fn does not run.
//
// An error of the key function is returned as it is, and fn does not run. Wrap panics if g or fn is nil.
func Wrap[In, Out any](g *Guard, key func(In) (string, error), fn func(context.Context, In) (Out, error),
	optFns ...func(*WrapOptions[In, Out])) func(context.Context, In) (Out, error) {
	switch {
	case g == nil:
		panic("idempotency: Wrap: guard is nil")
	case fn == nil:
		panic("idempotency: Wrap: function is nil")
	}
	if key == nil {
		key = inputHash[In]
	}
	var options WrapOptions[In, Out]
	for _, f := range optFns {
		if f != nil {
			f(&options)
		}
	}
	// Copies, so that a pointer kept by an option function changes nothing.
	fingerprint, load, replayed := options.Fingerprint, options.Load, options.Replayed
	return func(ctx context.Context, in In) (Out, error) {
		var (
			r    Request
			zero Out
			err  error
		)
		if r.Key, err = key(in); err != nil {
			return zero, err
		}
		if fingerprint != nil {
			if r.Fingerprint, err = fingerprint(in); err != nil {
				return zero, err
			}
		}
		var loadOutput func(context.Context) (Out, error)
		if load != nil {
			loadOutput = func(ctx context.Context) (Out, error) { return load(ctx, in) }
		}
		result, err := do(ctx, g, r, func(ctx context.Context) (Out, error) { return fn(ctx, in) }, loadOutput)
		if err == nil && result.Replayed && replayed != nil {
			return replayed(ctx, result.Value)
		}
		return result.Value, err
	}
}

// inputHash is the key of an input that has no other, or "" if there is nothing in the input.
func inputHash[In any](in In) (string, error) {
	payload, err := json.Marshal(in)
	switch {
	case err != nil:
	case replaced(payload):
		err = errors.New("it has a string that is not valid UTF-8")
	default:
		payload, err = CanonicalJSON(payload)
	}
	if err != nil {
		return "", fmt.Errorf("idempotency: Wrap has no key function, and the input has no JSON to make a key of, want a %v that "+
			"has: %w", reflect.TypeFor[In](), err)
	}
	switch string(payload) {
	case "null", `""`, "[]", "{}":
		return "", nil
	}
	return SHA256.sum(payload)
}

// replaced reports whether encoding/json has put an escape where a string has broken UTF-8: one and the same, whatever
// was there. A character U+FFFD of the string itself it writes as it is.
func replaced(text []byte) bool {
	const escape = `\ufffd`
	for {
		before, after, found := bytes.Cut(text, []byte(escape))
		if !found {
			return false
		}
		if backslashes := len(before) - len(bytes.TrimRight(before, `\`)); backslashes%2 == 0 {
			return true
		}
		text = after
	}
}
