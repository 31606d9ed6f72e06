package stream

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// Naming decodes records of type R, and names them to the guard.
type Naming[R any] struct {
	Source string // the package's name, and
	Noun   string // its name for a record, for errors
	Batch  *batch.Options
	Guard  *idempotency.Guard // nil: records have no names

	// ID returns what errors call the record.
	ID func(R) string
	// Decode decodes the record, and DecodeMayRecover is whether the user's function does, which may fail for another
	// reason than the record.
	Decode           func(R) error
	DecodeMayRecover bool
	// Own returns the source's own identity of the record.
	Own func(R) (string, error)
	// Key returns the user's key of it, and KeyOfData is whether that needs the record decoded. A nil Key means Own.
	Key       func(R) (string, error)
	KeyOfData bool
	// Fingerprint returns the user's fingerprint of it. Nil means none.
	Fingerprint func(R) (string, error)
}

// Prepare names a record, and decodes it if it has to be for that. What is wrong with it is left in problem, for its Handle
// to return: a record that cannot be decoded or named is claimed under the source's own identity, so that its attempts
// are counted, and it is not given up twice. Where nobody counts, one that will not get better is given up at once, as far
// as there is a sink for it: it would block its shard. What has no identity either is returned as an error.
func (n *Naming[R]) Prepare(r R, problem *error) (pipeline.Identity, error) {
	err := n.final(*problem, true)
	if n.Guard == nil {
		if err == nil {
			err = n.decode(r)
		}
		return pipeline.Identity{}, err
	}
	if err == nil {
		var identity pipeline.Identity
		if identity, err = n.name(r); err == nil {
			return identity, nil
		}
	}
	own, ownErr := n.Own(r)
	if ownErr != nil {
		if err = errors.Join(err, ownErr); n.Batch.DeadLetter != nil {
			err = batch.Permanent(err) // nobody can count it
		}
		return pipeline.Identity{}, err
	}
	*problem = err
	return pipeline.Identity{Key: own, Own: true}, nil
}

// DecodeClaimed decodes a record that was named without. A segment that is delivered again is replayed for the most part,
// and what is replayed need not be decoded.
func (n *Naming[R]) DecodeClaimed(r R, problem *error) {
	if *problem == nil && !n.KeyOfData {
		defer n.recovered(problem)
		*problem = n.decode(r)
	}
}

// counts reports whether a record is given up by its number of attempts.
func (n *Naming[R]) counts() bool {
	return n.Guard != nil && n.Guard.Options().CountAttempts && n.Batch.MaxAttempts > 0
}

// recovered makes an error of a panic.
func (n *Naming[R]) recovered(err *error) {
	if value := recover(); value != nil {
		*err = &batch.PanicError{Value: value, Stack: debug.Stack()}
	}
}

func (n *Naming[R]) decode(r R) error { return n.final(n.Decode(r), !n.DecodeMayRecover) }

func (n *Naming[R]) name(r R) (identity pipeline.Identity, err error) {
	defer n.recovered(&err)
	if n.KeyOfData {
		if err := n.decode(r); err != nil {
			return identity, err
		}
	}
	if n.Key == nil {
		identity.Own = true
		identity.Key, err = n.Own(r)
	} else {
		identity.Key, err = n.Key(r)
		missing := (err == nil && identity.Key == "") || errors.Is(err, idempotency.ErrKeyMissing)
		switch fails := n.Guard.Options().MissingKey == idempotency.MissingKeyFails; {
		case missing && !fails:
			return pipeline.Identity{}, nil // it runs unprotected
		case missing && err == nil:
			err = idempotency.ErrKeyMissing
		}
	}
	if err != nil {
		err = n.final(err, errors.Is(err, idempotency.ErrKeyMissing) || isOfPayload(err))
		return pipeline.Identity{}, fmt.Errorf("%s: key of %s %.200q: %w", n.Source, n.Noun, n.ID(r), err)
	}
	if n.Fingerprint != nil {
		if identity.Fingerprint, err = n.Fingerprint(r); err != nil {
			err = n.final(err, isOfPayload(err))
			return pipeline.Identity{}, fmt.Errorf("%s: fingerprint of %s %.200q: %w", n.Source, n.Noun, n.ID(r), err)
		}
	}
	return identity, nil
}

// OfPayload returns a function for Naming that gives f the bytes of a record's payload, which f may keep and change.
func OfPayload[R any](f func(payload []byte) (string, error), payload func(R) ([]byte, error)) func(R) (string, error) {
	return func(r R) (string, error) {
		data, err := payload(r)
		if err != nil {
			return "", &payloadError{err}
		}
		name, err := f(data)
		if err != nil {
			return "", &payloadError{err}
		}
		return name, nil
	}
}

// payloadError is the error of a function of bytes: it stays one, since the bytes stay what they are.
type payloadError struct{ err error }

func (e *payloadError) Error() string { return e.err.Error() }
func (e *payloadError) Unwrap() error { return e.err }

func isOfPayload(err error) bool {
	_, ok := errors.AsType[*payloadError](err)
	return ok
}

// final makes an error that stays one permanent, if that is of use: there is a sink, and nobody counts attempts.
func (n *Naming[R]) final(err error, stays bool) error {
	if err != nil && stays && n.Batch.DeadLetter != nil && !n.counts() {
		return batch.Permanent(err)
	}
	return err
}
