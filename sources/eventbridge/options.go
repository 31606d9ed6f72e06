package eventbridge

import (
	"errors"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/payload"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// Options are the options of a Handler. The zero value is a good default, but for Idempotency.
type Options struct {
	// In middleware, hooks and DeadLetter, Record.Value is the handler's *Event[T]. Where the detail could not be decoded,
	// or did not have to be, as for a replay, Detail is zero there and RawDetail has the bytes; middleware runs for neither. Record.ID is EventBridge's
	// own identity of the event, source and id, and Record.Source its source.
	//
	// Timeout must be set for a target that gives up before the function's context says: see the package's documentation.
	//
	// EventBridge does not tell the number of a delivery, so MaxAttempts needs idempotency.Options.CountAttempts, with which
	// the guard counts how often the handler was started with an event.
	//
	// DeadLetter also gets events that cannot be decoded, or that have no key: at MaxAttempts, and where nobody counts at
	// once, since they will not get better. What a Decode, Key or Fingerprint of one's own returns is such an error only
	// if it is batch.Permanent.
	//
	// Any failure is an error of the invocation, since EventBridge knows no partial answer. ErrorOn may say so, but not
	// batch.ErrorOnTotalFailure.
	batch.Options

	// Idempotency is the guard that keeps finished events from running again. Nil means that there is none: an event runs
	// as often as it is delivered, and with it all others of its invocation. A guard without an expiry of its own keeps keys
	// for 31 hours: EventBridge tries for a day, and Lambda for six hours more.
	Idempotency *idempotency.Guard

	// Key returns the key of an event, from the event as it was delivered. It is computed before the detail is decoded and
	// the handler runs. Nil means KeyOf, if that is set, or the detail's IdempotencyKey method, if it has one, or source
	// and id; for a scheduled rule, the rule and the time. A producer that sends again makes an event with another id, which
	// only a key of its own recognises.
	Key func(v View) (string, error)

	// PayloadKey returns the key of an event from the bytes that a Decode gets: the detail's JSON, or, of a detail that is a JSON
	// string, the string's text. It is for functions that know no source, such as the Key of an expression of package jmespath,
	// or idempotency.PayloadHash where equal details are the same work. The bytes are a copy, for it to keep and to change. An
	// error that is idempotency.ErrKeyMissing is the same as no key. Any error counts as one that will not get better, since
	// the bytes stay what they are. Nil means that there is none. It excludes Key and KeyOf.
	PayloadKey func(payload []byte) (string, error)

	// Fingerprint returns a fingerprint of what the key stands for, for example DetailSHA256. An event with the key of
	// another and a different fingerprint fails with idempotency.ErrFingerprintMismatch, instead of passing for the
	// other. It is stored as it is, so it should be a hash. Nil means none.
	Fingerprint func(v View) (string, error)

	// PayloadFingerprint is Fingerprint from the bytes that PayloadKey gets, such as idempotency.PayloadHash, to which details of
	// the same JSON value are the same, or the Fingerprint of an expression of package jmespath. It excludes Fingerprint.
	PayloadFingerprint func(payload []byte) (string, error)

	// Decode decodes a detail, of which it may keep the bytes, into v, a pointer to the handler's T. It gets the detail's
	// JSON, or, of a detail that is a JSON string, the string's text. Nil means that a string or []byte has just that, that
	// a json.RawMessage has the JSON in any case, and that anything else is decoded as JSON, by the rules of encoding/json:
	// a string that holds an object or an array stands for these, unless they do not fit and the string does. Null then
	// fails, unless T is a pointer, an interface, a map, a slice, or has an UnmarshalJSON of its own.
	Decode func(detail []byte, v any) error

	// Lane returns the order that an event of an array is kept in: those with the same lane run one at a time, in the
	// order of the array, and not behind one that failed. It is asked for events that are going to fail too, such as one
	// whose id is no string, but not for null and for another source's records. Events with an empty lane are free. Nil means the event group,
	// which events have that are delivered with metadata.
	Lane func(v View) string

	// RunReplays makes replayed events run again: the replay's name becomes a part of their keys, KeyOf's and Key's too.
	// By default an event that is replayed while its key lives is recognised, and does not run. Replays of a custom event
	// bus have no names and show in events with metadata only; all of one key's life pass for the same. MaxAge does not hold
	// for a replay that runs again.
	RunReplays bool

	// MaxAge is how old an event may be when its handler is about to start. An older one is given up with ErrTooOld: it
	// goes to DeadLetter, and fails with that error where there is none. The age counts from when a custom event bus took
	// the event in, or from the envelope's time; an event with neither has none. A replay is as old as its event, but
	// for one that RunReplays makes run again there is no limit. 0 means no limit.
	MaxAge time.Duration

	detailKey any // a func(T) string, see KeyOf
}

// ErrTooOld is the error of an event that is older than Options.MaxAge.
var ErrTooOld = errors.New("eventbridge: event is too old")

func (o *Options) validate() error {
	errs := []error{stream.Validate("eventbridge", &o.Options, o.Idempotency, payload.KeyOptions{
		Key: o.Key != nil, KeyOf: o.detailKey != nil, PayloadKey: o.PayloadKey != nil,
		Fingerprint: o.Fingerprint != nil, PayloadFingerprint: o.PayloadFingerprint != nil,
	}, false)}
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("eventbridge: "+format, args...)) }
	if o.ErrorOn == batch.ErrorOnTotalFailure {
		add("Options.ErrorOn is ErrorOnTotalFailure, want 0 or ErrorOnAnyFailure: a failure that is no error of the invocation " +
			"would be a success to EventBridge")
	}
	if o.MaxAge < 0 {
		add("Options.MaxAge is %v, want 0 (for no limit) or more", o.MaxAge)
	}
	if o.RunReplays && o.Idempotency == nil {
		add("Options.RunReplays is set, but Options.Idempotency is nil, want a guard or neither")
	}
	return errors.Join(errs...)
}

// tooOld returns an error if the event is older than MaxAge. A replay that is to run again is meant to be old.
func (o *Options) tooOld(e *event) error {
	if o.MaxAge == 0 || (o.RunReplays && e.replay() != "") {
		return nil
	}
	at := e.at()
	if age := time.Since(at); at.IsZero() || age <= o.MaxAge {
		return nil
	}
	return batch.Permanent(fmt.Errorf("%w: it is of %s, want one that is no older than %v",
		ErrTooOld, at.UTC().Format(time.RFC3339), o.MaxAge))
}
