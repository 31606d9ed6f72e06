package eventbridgetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/sources/eventbridge/eventbridgetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errNo = errors.New("no")

func newBus(t *testing.T, name string, options ...func(*eventbridgetest.Options)) *eventbridgetest.Bus {
	t.Helper()
	b, err := eventbridgetest.NewBus(name, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// order returns an event that an order of this id was placed.
func order(id string) eventbridgetest.Event {
	return eventbridgetest.Event{
		Source: "com.example.orders", DetailType: "Order Placed", Detail: fmt.Sprintf(`{"id":%q}`, id),
	}
}

// put publishes orders of these ids and returns the events' ids.
func put(t *testing.T, b *eventbridgetest.Bus, orders ...string) []string {
	t.Helper()
	var ids []string
	for _, o := range orders {
		ids = append(ids, putIn(t, b, "", o))
	}
	return ids
}

// putIn publishes an order in an event group.
func putIn(t *testing.T, b *eventbridgetest.Bus, group, o string) string {
	t.Helper()
	e := order(o)
	e.Group = group
	id, err := b.Put(e)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func drain(t *testing.T, b *eventbridgetest.Bus, h lambdatest.Handler) {
	t.Helper()
	if err := b.Drain(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// handler is a handler that does fn with the orders of a payload.
func handler(fn func(ctx context.Context, orders []string) error) lambdatest.HandlerFunc {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		orders, err := ordersOf(payload)
		if err != nil {
			return nil, err
		}
		return []byte("null"), fn(ctx, orders)
	}
}

// ordersOf returns the ids of the orders in a payload, one event or an array, with metadata or without.
func ordersOf(payload []byte) (orders []string, err error) {
	type detail struct{ ID string }
	type event struct {
		Detail detail
		Data   struct{ Detail detail }
	}
	if payload[0] != '[' {
		payload = []byte("[" + string(payload) + "]")
	}
	var events []event
	err = json.Unmarshal(payload, &events)
	for _, e := range events {
		orders = append(orders, e.Detail.ID+e.Data.Detail.ID)
	}
	return orders, err
}

// log is a list that goroutines can add to.
type log[T any] struct {
	mu    sync.Mutex
	items []T
}

func (l *log[T]) add(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
}

func (l *log[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]T(nil), l.items...)
}

// timetable notes what happens when.
type timetable struct {
	log[string]
	start time.Time
}

func newTimetable() *timetable { return &timetable{start: time.Now()} }

// note adds a line, such as "1m0s o1,o2".
func (l *timetable) note(what ...string) {
	l.add(fmt.Sprint(time.Since(l.start), " ", strings.Join(what, ",")))
}

// result returns one error for as many calls as there are, then nil.
func failFirst(n int) func() error {
	var mu sync.Mutex
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if n--; n >= 0 {
			return errNo
		}
		return nil
	}
}

// at returns the whole seconds from start to each of the times.
func at(start time.Time, times ...time.Time) []float64 {
	var seconds []float64
	for _, t := range times {
		seconds = append(seconds, t.Sub(start).Seconds())
	}
	return seconds
}
