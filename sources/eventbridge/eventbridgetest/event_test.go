package eventbridgetest_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/eventbridge"
	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestPutRefuses(t *testing.T) {
	type event = eventbridgetest.Event
	rule, subscriber := newBus(t, "orders"), newBus(t, "orders", subscribed(eventbridgetest.Subscriber{}))
	for _, test := range []struct {
		name   string
		bus    *eventbridgetest.Bus
		change func(*event)
		want   string
	}{
		{"no source", rule, func(e *event) { e.Source = "" }, "Source of the event is empty"},
		{"no detail type", rule, func(e *event) { e.DetailType = "" }, "DetailType of the event is empty"},
		{"no detail", rule, func(e *event) { e.Detail = "" }, `Detail is "", but must be a JSON object`},
		{"no JSON", rule, func(e *event) { e.Detail = "{" }, `Detail is "{", but must be`},
		{"an array", rule, func(e *event) { e.Detail = " [1]" }, `Detail is " [1]", but must be`},
		{"too large", rule, func(e *event) { e.Detail = `{"a":"` + strings.Repeat("a", 1<<20) + `"}` }, "but must have at most 1048576"},
		{"too many resources", rule, func(e *event) { e.Resources = []string{strings.Repeat("a", 1<<20)} }, "at most 1048576"},
		{"a group", rule, func(e *event) { e.Group = "g" }, `Group is "g" and DeduplicationID "", but must be empty on bus "orders"`},
		{"a deduplication ID", rule, func(e *event) { e.DeduplicationID = "d" }, `DeduplicationID "d", but must be empty`},
		{"a long group", subscriber, func(e *event) { e.Group = strings.Repeat("g", 129) }, "Group has 129 bytes, but must have at most 128"},
		{"a long deduplication ID", subscriber, func(e *event) { e.DeduplicationID = strings.Repeat("d", 129) },
			"DeduplicationID has 129 bytes, but must have at most 128"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := order("o1")
			test.change(&e)
			id, err := test.bus.Put(e)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Put returned %q and error %v, want an error with %q", id, err, test.want)
			}
		})
	}
	for _, raw := range []struct {
		bus  *eventbridgetest.Bus
		data string
		want string
	}{
		{rule, "1", `bus "orders" has a rule, but raw events need a subscriber`},
		{subscriber, "x", `Data is "x", but must be JSON`},
		{subscriber, `"` + strings.Repeat("a", 1<<20) + `"`, "at most 1048576"},
	} {
		if id, err := raw.bus.PutRaw(eventbridgetest.RawEvent{Data: raw.data}); err == nil || !strings.Contains(err.Error(), raw.want) {
			t.Errorf("PutRaw returned %q and error %v, want an error with %q", id, err, raw.want)
		}
	}
	if s := rule.Stats(); s != (eventbridgetest.Stats{}) {
		t.Errorf("stats are %v, want nothing put", s)
	}
}

// What the function gets, in every form.
func TestPayloads(t *testing.T) {
	type options = eventbridgetest.Options
	const envelope = `{"version":"0","id":"<id>","detail-type":"Order Placed","source":"com.example.orders","account":"123456789012",` +
		`"time":"2000-01-01T00:00:00Z","region":"us-east-1",<replay>"resources":<resources>,"detail":{"id":"o1","note":"<&>"}}`
	plain := strings.NewReplacer("<replay>", "", "<resources>", "[]").Replace(envelope)
	system := func(kind, more string) string {
		return `"SystemMetadata":{"ContentType":"application/eventbridge+json","DeduplicationId":"d","EventGroupId":"g",` +
			`"aws:DeliveryType":"` + kind + `","aws:DetailType":"Order Placed","aws:EventId":"<id>","aws:IngestionTime":"2000-01-01T00:00:00Z",` +
			`"aws:SequenceNumber":"10000000000000000001","aws:Source":"com.example.orders"` + more + `}}`
	}
	grouped := func(e *eventbridgetest.Event) { e.Group, e.DeduplicationID = "g", "d" }
	for _, test := range []struct {
		name   string
		option func(*options)
		change func(*eventbridgetest.Event)
		raw    *eventbridgetest.RawEvent // instead of the event
		replay bool                      // what the replay delivers
		want   string
	}{
		{name: "rule", want: plain},
		{name: "resources and a fraction", change: func(e *eventbridgetest.Event) {
			e.Resources, e.Time = []string{"arn:a", "arn:b"}, time.Date(2000, 1, 1, 1, 0, 0, 999, time.FixedZone("", 3600))
		}, want: strings.NewReplacer("<replay>", "", "<resources>", `["arn:a","arn:b"]`).Replace(envelope)},
		{name: "rule, replay", replay: true, want: strings.NewReplacer("<replay>", `"replay-name":"fix",`, "<resources>", "[]").Replace(envelope)},
		{name: "batch", option: subscribed(eventbridgetest.Subscriber{}), want: "[" + plain + "]"},
		{name: "batch of at most one", option: subscribed(eventbridgetest.Subscriber{MaxBatchSize: 1}), want: plain},
		{name: "subscriber, replay", replay: true, option: subscribed(eventbridgetest.Subscriber{MaxBatchSize: 1}), want: plain},
		{name: "metadata", option: subscribed(eventbridgetest.Subscriber{WithMetadata: true}), change: grouped,
			want: `[{"Data":` + plain + `,` + system("LIVE", "") + `]`},
		{name: "metadata, replay", replay: true, option: subscribed(eventbridgetest.Subscriber{MaxBatchSize: 1, WithMetadata: true}), change: grouped,
			want: `{"Data":` + plain + `,` + system("REPLAY", "")},
		{name: "raw", option: subscribed(eventbridgetest.Subscriber{}), raw: &eventbridgetest.RawEvent{Data: `{"id": 1}`}, want: `[{"id": 1}]`},
		{name: "raw with metadata", option: subscribed(eventbridgetest.Subscriber{WithMetadata: true}),
			raw: &eventbridgetest.RawEvent{Data: `"x"`, Metadata: map[string]string{"tenant": "acme"}, Group: "g"},
			want: `[{"Data":"x","Metadata":{"tenant":"acme"},"SystemMetadata":{"ContentType":"application/json","EventGroupId":"g",` +
				`"aws:DeliveryType":"LIVE","aws:EventId":"<id>","aws:IngestionTime":"2000-01-01T00:00:00Z","aws:SequenceNumber":"10000000000000000001"}}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.option == nil {
					test.option = func(*options) {}
				}
				var observed log[string]
				b := newBus(t, "orders", test.option, func(o *options) {
					o.Observe = func(d eventbridgetest.Delivery) { observed.add(string(d.Payload)) }
				})
				e := order("o1")
				e.Detail = `{"id":"o1", "note":"<&>"}`
				if test.change != nil {
					test.change(&e)
				}
				id, err := b.Put(e)
				if test.raw != nil {
					b = newBus(t, "orders", test.option, func(o *options) {
						o.Observe = func(d eventbridgetest.Delivery) { observed.add(string(d.Payload)) }
					})
					id, err = b.PutRaw(*test.raw)
				}
				if err != nil || !uuid.MatchString(id) {
					t.Fatalf("id is %q and error %v, want a UUID of version 4", id, err)
				}
				var got string
				h := lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
					got = string(payload)
					return nil, nil
				})
				drain(t, b, h)
				if test.replay {
					if n, err := b.Replay(time.Now(), time.Now(), "fix"); n != 1 || err != nil {
						t.Fatalf("Replay returned %d and %v, want 1", n, err)
					}
					drain(t, b, h)
				}
				if diff := cmp.Diff(strings.ReplaceAll(test.want, "<id>", id), got); diff != "" {
					t.Errorf("payload (-want +got):\n%s", diff)
				}
				if all := observed.all(); all[len(all)-1] != got {
					t.Errorf("observed payload is %s, want what the handler got", all[len(all)-1])
				}
			})
		})
	}
}

// Events of the kit are events to the source's handler, with all that is in them.
func TestHandlerReadsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type seen struct {
			ID, Source, DetailType, Account, Region, Group, Order string
			Time                                                  time.Time
			Resources                                             []string
		}
		b := newBus(t, "orders", subscribed(eventbridgetest.Subscriber{WithMetadata: true}))
		e := order("o1")
		e.Group, e.Resources = "g", []string{"arn:a"}
		id, err := b.Put(e)
		if err != nil {
			t.Fatal(err)
		}
		var got seen
		h, err := eventbridge.NewHandler(func(_ context.Context, e *eventbridge.Event[struct{ ID string }]) error {
			got = seen{e.ID(), e.Source(), e.DetailType(), e.Account(), e.Region(), e.Group(), e.Detail.ID, e.Time(), e.Resources()}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		drain(t, b, h)
		want := seen{id, "com.example.orders", "Order Placed", "123456789012", "us-east-1", "g", "o1", time.Now().UTC(), []string{"arn:a"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	})
}

// A custom event bus knows a deduplication ID for five minutes, within a group.
func TestDeduplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, "orders", subscribed(eventbridgetest.Subscriber{}))
		send := func(group, deduplicationID string) string {
			e := order("o1")
			e.Group, e.DeduplicationID = group, deduplicationID
			id, err := b.Put(e)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		first := send("g", "d")
		time.Sleep(5*time.Minute - 1)
		if id := send("g", "d"); id != first {
			t.Errorf("within five minutes the id is %s, want that of the first, %s", id, first)
		}
		none := send("g", "")
		if send("h", "d") == first || send("g", "e") == first || send("g", "") == none {
			t.Error("another group, another ID or none has the same id, want another")
		}
		time.Sleep(time.Nanosecond)
		second := send("g", "d")
		if second == first {
			t.Error("after five minutes the id is that of the first, want another")
		}
		if id := send("g", "d"); id != second {
			t.Errorf("after the second the id is %s, want %s", id, second)
		}
		if s := b.Stats(); s.Put != 6 {
			t.Errorf("stats are %v, want 6 put", s)
		}
	})
}

// A scheduled rule names itself and the time, and firing twice it makes two events.
func TestTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, "default")
		due := time.Now().Add(-time.Hour)
		var ids []string
		for _, at := range []time.Time{due, due, {}} {
			id, err := b.Tick("nightly", at)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if ids[0] == ids[1] {
			t.Error("two events of one tick have the same id, want another")
		}
		var got []string
		drain(t, b, lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
			got = append(got, string(payload))
			return nil, nil
		}))
		tick := func(id, at string) string {
			return `{"version":"0","id":"` + id + `","detail-type":"Scheduled Event","source":"aws.events","account":"123456789012","time":"` +
				at + `","region":"us-east-1","resources":["arn:aws:events:us-east-1:123456789012:rule/nightly"],"detail":{}}`
		}
		want := []string{tick(ids[0], "1999-12-31T23:00:00Z"), tick(ids[1], "1999-12-31T23:00:00Z"), tick(ids[2], "2000-01-01T00:00:00Z")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("payloads (-want +got):\n%s", diff)
		}
		for _, test := range []struct {
			bus  *eventbridgetest.Bus
			rule string
			want string
		}{
			{newBus(t, "orders"), "nightly", `bus is "orders", but only the bus "default"`},
			{newBus(t, "default", subscribed(eventbridgetest.Subscriber{})), "nightly", `bus is "default", but only`},
			{b, "a b", `rule name is "a b", but must be 1 to 64`},
			{b, strings.Repeat("a", 65), "1 to 64"},
		} {
			if _, err := test.bus.Tick(test.rule, due); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		}
	})
}

func TestNewEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := order("o1")
		e.Detail = `{"id":"<o1>"}`
		first, second := eventbridgetest.NewEvent(e), eventbridgetest.NewEvent(e)
		if !uuid.MatchString(first.ID) || first.ID == second.ID {
			t.Errorf("ids are %q and %q, want two UUIDs", first.ID, second.ID)
		}
		payload := `{"version":"0","id":"` + first.ID + `","detail-type":"Order Placed","source":"com.example.orders","account":"123456789012",` +
			`"time":"2000-01-01T00:00:00Z","region":"us-east-1","resources":[],"detail":{"id":"<o1>"}}`
		if diff := cmp.Diff(payload, string(eventbridgetest.Payload(first))); diff != "" {
			t.Errorf("payload (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff("["+payload+","+payload+"]", string(eventbridgetest.Array(first, first))); diff != "" {
			t.Errorf("array (-want +got):\n%s", diff)
		}
		if got := string(eventbridgetest.Array()); got != "[]" {
			t.Errorf("array of none is %s, want []", got)
		}
	})
	for want, fn := range map[string]func(){
		"Source of the event is empty": func() { eventbridgetest.NewEvent(eventbridgetest.Event{}) },
		"eventbridgetest: event": func() {
			e := eventbridgetest.NewEvent(order("o1"))
			e.Detail = json.RawMessage("{")
			eventbridgetest.Payload(e)
		},
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("panic is %v, want one with %q", err, want)
				}
			}()
			fn()
		}()
	}
}
