package eventkey_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/eventkey"
)

// The texts are tested where they are shown, in packages eventbridge and sqs.
func TestIdentifier(t *testing.T) {
	for _, test := range []struct{ value, want, err string }{
		{`"a"`, "a", ""},
		{`"\u0061"`, "a", ""},
		{`""`, "", ""},
		{`null`, "", ""},
		{``, "", ""},
		{`7`, "", "id is a number, want a string"},
		{`{}`, "", "id is an object, want a string"},
		{"\"a\xff\"", "", "id has broken characters, want none"},
		{`"a\ud800"`, "", "id has broken characters, want none"},
	} {
		got, err := eventkey.Identifier("id", test.value)
		if text := textOf(err); got != test.want || text != test.err {
			t.Errorf("Identifier of %s is %q, error %q, want %q, error %q", test.value, got, text, test.want, test.err)
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Two events have one key only if they are the same event, or the same tick of a scheduled rule. No key is no text, and its
// error an ErrKeyMissing.
func TestKeyProperty(t *testing.T) {
	members := rapid.Custom(func(t *rapid.T) eventkey.Members {
		return eventkey.Members{
			ID:         rapid.SampledFrom([]string{"", "1", "2", "a#1", "<aws.scheduler.scheduled-time>", "rule", "2026-09-23T18:00:00Z"}).Draw(t, "id"),
			Source:     rapid.SampledFrom([]string{"", "shop", "shop#a", "aws.events", "aws.scheduler", "<aws.scheduler.arn>"}).Draw(t, "source"),
			DetailType: rapid.SampledFrom([]string{"", `"Scheduled Event"`, `"Order"`, `7`}).Draw(t, "detail-type"),
			Resources:  rapid.SampledFrom([]string{"", `[]`, `[""]`, `["rule"]`, `["a","b"]`, `7`, "[\"\xff\"]", "[\"\xfe\"]"}).Draw(t, "resources"),
			Time:       rapid.SampledFrom([]string{"", `"six"`, `"2026-09-23T18:00:00Z"`, `"2026-09-23T19:00:00Z"`}).Draw(t, "time"),
		}
	})
	isTick := func(m eventkey.Members) bool {
		return m.Source == "aws.events" && m.DetailType == `"Scheduled Event"` && m.Resources == `["rule"]` && len(m.Time) > len(`"six"`)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := members.Draw(t, "a"), members.Draw(t, "b")
		keyA, errA := a.Key()
		keyB, _ := b.Key()
		if (keyA == "") != errors.Is(errA, idempotency.ErrKeyMissing) || (keyA == "") != (errA != nil) {
			t.Fatalf("key is %q, error %v, want one of them", keyA, errA)
		}
		if keyA == "" || keyA != keyB {
			return
		}
		same := a.ID == b.ID && a.Source == b.Source
		if isTick(a) || isTick(b) {
			same = isTick(a) && isTick(b) && a.Time == b.Time
		}
		if !same {
			t.Fatalf("%+v and %+v have one key, %q", a, b, keyA)
		}
	})
}
