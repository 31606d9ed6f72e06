package eventbridge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/payload"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// EventBridge tries for 24 hours to deliver an event, and Lambda for six more to run the function
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html and
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html). A key lives an hour longer by default.
const keyLife = (24 + 6 + 1) * time.Hour

// KeyOf is an option that takes the key of an event from its decoded detail. T is the handler's: NewHandler returns an
// error for another. An empty key is a missing one, see idempotency.Options.MissingKey.
func KeyOf[T any](key func(T) string) func(*Options) {
	return func(o *Options) { o.detailKey = key }
}

// DetailSHA256 is a fingerprint for Options.Fingerprint: the hash of the detail's JSON, or of all data without an envelope.
// JSON of the same value, but in other words, is another one.
func DetailSHA256(v View) (string, error) {
	sum := sha256.Sum256(v.RawDetail())
	return hex.EncodeToString(sum[:]), nil
}

// newNaming returns how events are decoded and named.
func newNaming[T any](o *Options) (*stream.Naming[*Event[T]], error) {
	decoder := newDecoder[T](o.Decode)
	n := &stream.Naming[*Event[T]]{
		Source: "eventbridge", Noun: "event", Batch: &o.Options, Guard: o.Idempotency,
		ID:     func(v *Event[T]) string { return v.e.id },
		Decode: decoder.decode, DecodeMayRecover: o.Decode != nil,
		Own: func(v *Event[T]) (string, error) {
			if v.e.own == "" {
				return "", fmt.Errorf("%w: nor has it an id of its own", idempotency.ErrKeyMissing)
			}
			return v.e.own, nil
		},
	}
	if o.Fingerprint != nil {
		n.Fingerprint = func(v *Event[T]) (string, error) { return o.Fingerprint(v.View) }
	}
	if o.Key != nil {
		n.Key = func(v *Event[T]) (string, error) {
			key, err := o.Key(v.View)
			return o.keyOfRun(v.e, key), err
		}
		return n, nil
	}
	key, err := payload.Key[T](o.detailKey)
	if err != nil {
		return nil, fmt.Errorf("eventbridge: %w", err)
	}
	if key != nil {
		n.Key, n.KeyOfData = func(v *Event[T]) (string, error) { return o.keyOfRun(v.e, key(&v.Detail)), nil }, true
	}
	return n, nil
}

// keyOfRun makes the key of one run of an event: a replay that is to run again has another one.
func (o *Options) keyOfRun(e *event, key string) string {
	if !o.RunReplays {
		return key
	}
	if name := e.replay(); name != "" {
		return idempotency.JoinKey("replay-name", name, key) // still none if key is none
	}
	return key
}

const (
	schedulerSource = "aws.scheduler"
	ruleSource      = "aws.events"
	scheduledEvent  = "Scheduled Event" // the detail type of both

	// schedulerKeyword begins what Scheduler replaces in an input
	// (https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html).
	schedulerKeyword = "<aws.scheduler."
)

// schedulerInput is what a schedule's input has to be for the default key.
const schedulerInput = `{"source":"<aws.scheduler.schedule-arn>","id":"<aws.scheduler.scheduled-time>",` +
	`"detail-type":"Schedule","detail":{}}`

// ownKey returns EventBridge's own identity of the event, or "" if it has none.
//
// The tick of a scheduled rule is named by the rule and the time, since the rule can fire more than once for it, with
// another id.
func (e *event) ownKey() string {
	switch {
	case e.isScheduled(schedulerSource), e.hasKeyword():
		return ""
	case e.isScheduled(ruleSource):
		if rules, at := e.resourceNames(), timeOf(e.time); len(rules) == 1 && !at.IsZero() {
			return idempotency.JoinKey(rules[0], at.UTC().Format(time.RFC3339Nano))
		}
	case e.source == "" && !e.enveloped:
		return idempotency.JoinKey(systemID, e.id) // published as raw data, which have no source
	}
	return idempotency.JoinKey(e.source, e.id)
}

func (e *event) isScheduled(source string) bool {
	return e.enveloped && e.source == source && e.detailTypeText() == scheduledEvent
}

// hasKeyword reports whether a keyword of Scheduler stands where its value should. It would be the same key for ever.
func (e *event) hasKeyword() bool {
	return strings.Contains(e.id, schedulerKeyword) || strings.Contains(e.source, schedulerKeyword)
}

// keyMissing says why the event has no identity, and what to do about it.
func (e *event) keyMissing() error {
	reason := "the envelope has no id, want one, or a key of your own by KeyOf or Options.Key"
	switch {
	case e.isScheduled(schedulerSource):
		reason = "Scheduler's default input has nothing that is the same at every attempt, want " + schedulerInput +
			" as the schedule's input, or a key of your own by KeyOf or Options.Key"
	case e.hasKeyword():
		reason = fmt.Sprintf("Scheduler did not replace a keyword in source %.200q and id %.200q, want "+
			"<aws.scheduler.schedule-arn> and <aws.scheduler.scheduled-time>", e.source, e.id)
	case !e.enveloped:
		reason = "data without an envelope, which has detail-type, source and detail, have no id, want a key of your own by " +
			"KeyOf or Options.Key, or a subscriber that delivers them WITH_METADATA"
	case e.id != "":
		reason = "the envelope has no source, want one, or a key of your own by KeyOf or Options.Key"
	}
	return fmt.Errorf("%w: %s", idempotency.ErrKeyMissing, reason)
}
