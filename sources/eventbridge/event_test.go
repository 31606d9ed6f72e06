package eventbridge_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/eventbridge"
)

// seen is all that a handler sees of an event.
type seen struct {
	Detail                                          any
	ID, Source, DetailType, Account, Region, Replay string
	Group                                           string
	IsReplay                                        bool
	Time                                            time.Time
	Resources                                       []string
}

func see(v eventbridge.View, detail any) seen {
	return seen{
		Detail: detail, ID: v.ID(), Source: v.Source(), DetailType: v.DetailType(), Account: v.Account(), Region: v.Region(),
		Replay: v.ReplayName(), IsReplay: v.IsReplay(), Group: v.Group(), Time: v.Time(), Resources: v.Resources(),
	}
}

// The shapes in which events arrive, each alone and in an array.
func TestShapes(t *testing.T) {
	whole := seen{
		Detail: map[string]any{"id": "o1", "amount": 1.0}, ID: uuid(1), Source: "com.example.orders", DetailType: "Order Placed",
		Account: "123456789012", Region: "eu-central-1", Time: published, Resources: []string{"arn:aws:ecs:eu-central-1:123456789012:task/7"},
	}
	with := func(f func(*seen)) seen {
		s := whole
		f(&s)
		return s
	}
	raw := func(detail any) seen { return seen{Detail: detail} }
	const text = `{"id":"o1","amount":1}`
	event := placed(1, "o1")
	for _, test := range []struct {
		name, event string
		want        seen
	}{
		{"an envelope", event, whole},
		{"white space", " \n" + event + "\t", whole},
		{"a replay", change(event, `"version"`, `"replay-name":"fix","version"`), with(func(s *seen) { s.Replay, s.IsReplay = "fix", true })},
		{"no time", change(event, `"time"`, `"other"`), with(func(s *seen) { s.Time = time.Time{} })},
		{"a time of a wrong kind", change(event, `"time":"2026-09-23T18:00:00Z"`, `"time":17`), with(func(s *seen) { s.Time = time.Time{} })},
		{"a malformed time", change(event, "18:00:00Z", "six"), with(func(s *seen) { s.Time = time.Time{} })},
		{"a fraction", change(event, "18:00:00Z", "18:00:00.5Z"), with(func(s *seen) { s.Time = published.Add(time.Second / 2) })},
		{"members of a wrong kind", change(event, `"account":"123456789012"`, `"account":12`, `"eu-central-1"`, `null`,
			`["arn:aws:ecs:eu-central-1:123456789012:task/7"]`, `[1]`, `"Order Placed"`, `{}`),
			with(func(s *seen) { s.Account, s.Region, s.Resources, s.DetailType = "", "", nil, "" })},
		{"members of its own", change(event, `"version"`, `"more":1,"version"`), whole},
		{"detail a string of JSON", change(event, text, quote(text)), whole},
		{"detail a string of an array", change(event, text, quote(` [1]`)), with(func(s *seen) { s.Detail = []any{1.0} })},
		{"detail a text", change(event, text, `"hello"`), with(func(s *seen) { s.Detail = "hello" })},
		{"detail a text that looks like JSON", change(event, text, `"{hello"`), with(func(s *seen) { s.Detail = "{hello" })},
		{"detail a string of a number", change(event, text, `"17"`), with(func(s *seen) { s.Detail = "17" })},
		{"detail a number", change(event, text, `17`), with(func(s *seen) { s.Detail = 17.0 })},
		{"with metadata", withMetadata(1, event, "g"), with(func(s *seen) { s.Group = "g" })},
		{"with metadata, a replay", change(withMetadata(1, event, "g"), "LIVE", "REPLAY"), with(func(s *seen) { s.Group, s.IsReplay = "g", true })},
		{"with metadata, as a string", withMetadata(1, quote(event), "g"), with(func(s *seen) { s.Group = "g" })},
		{"an envelope as a string", quote(event), whole},
		{"with metadata, raw", withMetadata(1, text, "g"), seen{Detail: whole.Detail, ID: uuid(1), Group: "g", Time: published.Add(time.Second)}},
		{"with metadata, a string of raw JSON", withMetadata(1, quote(text), "g"), seen{Detail: whole.Detail, ID: uuid(1), Group: "g", Time: published.Add(time.Second)}},
		{"with metadata, bytes", withMetadata(1, `"aGVsbG8="`, "g"), seen{Detail: "aGVsbG8=", ID: uuid(1), Group: "g", Time: published.Add(time.Second)}},
		{"with metadata, source and type there only", change(withMetadata(1, text, "g"), `"aws:EventId"`, `"aws:Source":"s","aws:DetailType":"t","aws:EventId"`),
			seen{Detail: whole.Detail, ID: uuid(1), Group: "g", Time: published.Add(time.Second), Source: "s", DetailType: "t"}},
		{"with metadata, no time", withMetadata(1, change(event, `"time"`, `"other"`), "g"), with(func(s *seen) { s.Group, s.Time = "g", time.Time{} })},
		{"raw", text, raw(whole.Detail)},
		{"a raw string that begins as an envelope", quote(event[:len(event)-1]), raw(event[:len(event)-1])},
		{"raw with the names of two members", `{"detail-type":"a","source":"b"}`, raw(map[string]any{"detail-type": "a", "source": "b"})},
		{"raw with other two", `{"detail":"a","source":"b"}`, raw(map[string]any{"detail": "a", "source": "b"})},
		{"raw with an id", `{"id":"o1"}`, raw(map[string]any{"id": "o1"})},
		{"raw with Data", `{"Data":1,"Metadata":{}}`, raw(map[string]any{"Data": 1.0, "Metadata": map[string]any{}})},
		{"raw with SystemMetadata of a wrong kind", `{"Data":1,"SystemMetadata":2}`, raw(map[string]any{"Data": 1.0, "SystemMetadata": 2.0})},
		{"raw with an event source of its own", `{"eventSource":"s3.amazonaws.com"}`, raw(map[string]any{"eventSource": "s3.amazonaws.com"})},
		{"raw with records of its own", `{"Records":[{"eventSource":"x"}]}`, raw(map[string]any{"Records": []any{map[string]any{"eventSource": "x"}}})},
		{"raw with no records", `{"Records":[]}`, raw(map[string]any{"Records": []any{}})},
		{"a raw string", `"hello"`, raw("hello")},
		{"a raw number", `17`, raw(17.0)},
		{"a raw boolean", `false`, raw(false)},
		{"an empty object", `{}`, raw(map[string]any{})},
		{"a scheduled rule", tick, seen{Detail: map[string]any{}, ID: "cdc73f9d-aea9-11e3-9d5a-835b769c0d9c", Source: "aws.events",
			DetailType: "Scheduled Event", Account: "123456789012", Region: "eu-central-1", Time: published, Resources: []string{ruleARN}}},
		{"Scheduler", scheduled, seen{Detail: map[string]any{}, ID: "37666ae6-48cf-4285-b4c6-a3320b38824a", Source: "aws.scheduler",
			DetailType: "Scheduled Event", Account: "123456789012", Region: "eu-central-1", Time: published,
			Resources: []string{"arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly"}}},
		{"Scheduler's input", templated, seen{Detail: map[string]any{"id": "nightly"}, ID: "2026-09-23T18:00:00Z",
			Source: "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly", DetailType: "Schedule"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, payload := range [][]byte{[]byte(test.event), array(test.event)} {
				var got []seen
				h := newHandler(t, func(_ context.Context, e *eventbridge.Event[any]) error {
					got = append(got, see(e.View, e.Detail))
					return nil
				})
				wantDone(t, t.Context(), h, payload)
				if diff := cmp.Diff([]seen{test.want}, got); diff != "" {
					t.Errorf("events of %s (-want +got):\n%s", payload, diff)
				}
			}
		})
	}
}

// What one event of an array has, the next has not.
func TestShapesBesideEachOther(t *testing.T) {
	ids := func(events ...string) (got []string) {
		h := newHandler(t, func(_ context.Context, e *eventbridge.Event[json.RawMessage]) error {
			got = append(got, e.ID()+e.Group()+string(e.Detail))
			return nil
		}, concurrency(1))
		wantDone(t, t.Context(), h, array(events...))
		return got
	}
	meta, plain, raw := withMetadata(1, `{"a":1}`, "g"), change(placed(2, "o1"), `{"id":"o1","amount":2}`, `3`), `{"b":4}`
	want := []string{uuid(1) + `g{"a":1}`, `{"b":4}`, uuid(2) + `3`, `{"b":4}`, `{"id":"5"}`}
	if diff := cmp.Diff(want, ids(meta, raw, plain, raw, `{"id":"5"}`)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// JSON is the event as it was delivered, RawDetail what Detail is decoded from. Both outlive the payload.
func TestJSON(t *testing.T) {
	event, detail := placed(1, "o1"), `{"id":"o1","amount":1}`
	for _, test := range []struct{ name, event, detail string }{
		{"an envelope", event, detail},
		{"with metadata", withMetadata(1, event, "g"), detail},
		{"with metadata, as a string", withMetadata(1, quote(event), "g"), detail},
		{"with metadata, raw", withMetadata(1, "[1, 2]", "g"), "[1, 2]"},
		{"raw", `{"id": 1}`, `{"id": 1}`},
		{"a string", `"a\"b"`, `"a\"b"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var view eventbridge.View
			h := newHandler(t, func(_ context.Context, e *eventbridge.Event[any]) error { view = e.View; return nil })
			payload := array(test.event)
			wantDone(t, t.Context(), h, payload)
			clear(payload) // as aws-lambda-go does, with the next event
			if got := view.JSON(); got != test.event {
				t.Errorf("JSON is %s, want %s", got, test.event)
			}
			if got := string(view.RawDetail()); got != test.detail {
				t.Errorf("RawDetail is %s, want %s", got, test.detail)
			}
		})
	}
}

// A literal has zero values.
func TestLiteral(t *testing.T) {
	e := &eventbridge.Event[order]{Detail: order{ID: "o1"}}
	if diff := cmp.Diff(seen{Detail: order{ID: "o1"}}, see(e.View, e.Detail)); diff != "" {
		t.Errorf("literal (-want +got):\n%s", diff)
	}
	if e.JSON() != "" || e.RawDetail() != nil {
		t.Errorf("JSON is %q, RawDetail %q, want none", e.JSON(), e.RawDetail())
	}
}

// Handle takes the event of aws-lambda-go, whose zero time is none.
func TestHandle(t *testing.T) {
	var got []seen
	h := newHandler(t, func(_ context.Context, e *eventbridge.Event[order]) error {
		got = append(got, see(e.View, e.Detail))
		return failing("bad")[e.Detail.ID]
	}, guarded(t), func(o *eventbridge.Options) { o.MaxAge = time.Hour })
	event := events.EventBridgeEvent{ID: "1", Source: "s", DetailType: "t", Detail: json.RawMessage(`{"id":"o1"}`)}
	if err := h.Handle(t.Context(), event); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]seen{{Detail: order{ID: "o1"}, ID: "1", Source: "s", DetailType: "t"}}, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	event.ID, event.Detail = "2", json.RawMessage(`{"id":"bad"}`)
	wantError(t, h.Handle(t.Context(), event), "batch: 1 of 1 records failed, the first (s#2): bad fails")
	event.Detail = nil
	wantError(t, h.Handle(t.Context(), event), `detail of event "2" is not a valid eventbridge_test.order: found null`)
	event.Detail = json.RawMessage(`{`)
	wantError(t, h.Handle(t.Context(), event), "eventbridge: event: json: error calling MarshalJSON")
}
