package eventkey

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// Members are what the key of an event is made of
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html).
type Members struct {
	ID, Source                  string // what Identifier returned
	DetailType, Resources, Time string // JSON, empty: the envelope has none
}

const (
	schedulerSource = "aws.scheduler"
	ruleSource      = "aws.events"
	scheduledEvent  = "Scheduled Event" // the detail type of both

	// schedulerKeyword begins what Scheduler replaces in an input
	// (https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html).
	schedulerKeyword = "<aws.scheduler."
)

// schedulerInput is what a schedule's input has to be for a key.
const schedulerInput = `{"source":"<aws.scheduler.schedule-arn>","id":"<aws.scheduler.scheduled-time>",` +
	`"detail-type":"Schedule","detail":{}}`

// Own is what a user can do about any missing key, for errors.
const Own = "a key of your own by KeyOf or Options.Key"

// Identifier returns the text of a member that keys are made of. Null is none. The error has no prefix, and
// shows nothing of the text.
func Identifier(name, value string) (string, error) {
	text, ok := envelope.String(value)
	switch {
	case !ok && value != "" && value[0] != 'n':
		return "", fmt.Errorf("%s is %s, want a string", name, envelope.KindOf(value))
	case envelope.Broken(text):
		// Two that differ there only would pass for one.
		return "", fmt.Errorf("%s has broken characters, want none", name)
	}
	return text, nil
}

// Key returns the event's key: source and id, or rule and time for the tick of a scheduled rule, since the rule can fire more
// than once for it, with another id. The error is an idempotency.ErrKeyMissing that says why there is none, and what to do
// about it.
func (m *Members) Key() (string, error) {
	switch {
	case m.isScheduled(schedulerSource):
		return missing("Scheduler's default input has nothing that is the same at every attempt, want %s as the schedule's input, or %s",
			schedulerInput, Own)
	case strings.Contains(m.ID, schedulerKeyword), strings.Contains(m.Source, schedulerKeyword):
		// It would be the same key for ever.
		return missing("Scheduler did not replace a keyword in source %.200q and id %.200q, want "+
			"<aws.scheduler.schedule-arn> and <aws.scheduler.scheduled-time>", m.Source, m.ID)
	case m.isScheduled(ruleSource):
		if key := m.tick(); key != "" {
			return key, nil
		}
	}
	if m.ID == "" {
		return missing("the envelope has no id, want one, or %s", Own)
	}
	if m.Source == "" {
		return missing("the envelope has no source, want one, or %s", Own)
	}
	return idempotency.JoinKey(m.Source, m.ID), nil
}

func (m *Members) isScheduled(source string) bool {
	if m.Source != source {
		return false
	}
	text, _ := envelope.String(m.DetailType)
	return text == scheduledEvent
}

// tick names the tick of a scheduled rule, or is empty if the event does not say which it is.
func (m *Members) tick() string {
	var rules []string
	if m.Resources == "" || json.Unmarshal([]byte(m.Resources), &rules) != nil || len(rules) != 1 || envelope.Broken(rules[0]) {
		return ""
	}
	text, _ := envelope.String(m.Time)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.IsZero() {
		return ""
	}
	return idempotency.JoinKey(rules[0], at.UTC().Format(time.RFC3339Nano)) // empty if the rule is
}

// missing returns an ErrKeyMissing.
func missing(format string, args ...any) (string, error) {
	return "", fmt.Errorf("%w: "+format, append([]any{idempotency.ErrKeyMissing}, args...)...)
}
