package eventbridgetest

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

const (
	region      = "us-east-1"
	account     = "123456789012"
	arnPrefix   = "arn:aws:events:" + region + ":" + account + ":"
	functionARN = "arn:aws:lambda:" + region + ":" + account + ":function:consumer"

	// dedupWindow is how long a custom event bus knows a deduplication ID
	// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-ordering.html).
	dedupWindow = 5 * time.Minute
)

// Bus is an event bus in memory, together with the rule or subscriber that delivers all its events to a function, and with
// Lambda's queue of asynchronous invocations in between. NewBus makes one. Its methods are safe for concurrent use.
type Bus struct {
	name     string
	options  Options
	seed     lambdatest.Seed
	function *lambdatest.Function

	mu          sync.Mutex
	changed     chan struct{} // closed and replaced when something has changed that a waiter could wait for
	closed      bool
	events      []*event
	byID        map[string]*event
	replays     map[string]bool
	dedup       map[string]*event
	pending     []part     // of a subscriber: what is in no batch yet, in the order put
	work        *list.List // of *work: what is to be delivered, and is being
	formed      int        // how much work there ever was
	deadLetters []DeadLetter
	stats       Stats
}

// NewBus returns a bus without events. The caller closes it. A bus that is made in a testing/synctest bubble belongs to the
// bubble.
//
// The name is checked as AWS does. An option out of its limits is an error that names option, value and limit.
func NewBus(name string, options ...func(*Options)) (*Bus, error) {
	if !validName(name, "/", 256) {
		return nil, fmt.Errorf("eventbridgetest: bus name is %q, but must be 1 to 256 letters, digits, slashes, dots, underscores "+
			"and hyphens", name)
	}
	b := &Bus{
		name: name, changed: make(chan struct{}), byID: make(map[string]*event), replays: make(map[string]bool),
		dedup: make(map[string]*event), work: list.New(),
	}
	for _, option := range options {
		option(&b.options)
	}
	if err := b.options.resolve(); err != nil {
		return nil, err
	}
	b.seed = lambdatest.NewSeed(b.options.Seed)
	b.function = lambdatest.NewFunction(lambdatest.FunctionOptions{
		Timeout: b.options.FunctionTimeout, Crash: b.options.Crash, StoreFault: b.options.StoreFault,
	})
	return b, nil
}

// Name returns the bus's name.
func (b *Bus) Name() string { return b.name }

// ARN returns the bus's ARN.
func (b *Bus) ARN() string {
	if b.options.Subscriber != nil {
		return arnPrefix + "event-busv2/" + b.name + "/example1234567890abcdef12"
	}
	return arnPrefix + "event-bus/" + b.name
}

// Put publishes an event and returns its id, a UUID. A producer that puts an event again makes another one, with an id of its
// own; only a custom event bus recognises a DeduplicationID that it was given less than 5 minutes ago, keeps nothing and
// returns the id of the first. An event that EventBridge would refuse is an error.
func (b *Bus) Put(e Event) (id string, err error) {
	if err := e.check(); err != nil {
		return "", err
	}
	e.Resources = resources(e.Resources)
	return b.accept(&event{Event: e})
}

// PutRaw is Put without an envelope, on a custom event bus. Without WithMetadata the function gets no id then.
func (b *Bus) PutRaw(e RawEvent) (id string, err error) {
	if b.options.Subscriber == nil {
		return "", fmt.Errorf("eventbridgetest: bus %q has a rule, but raw events need a subscriber", b.name)
	}
	if err := e.check(); err != nil {
		return "", err
	}
	return b.accept(&event{
		Event: Event{Group: e.Group, DeduplicationID: e.DeduplicationID}, raw: e.Data, metadata: maps.Clone(e.Metadata),
	})
}

// Tick publishes the event of a scheduled rule, and returns its id. at is the time that the rule was to fire at; the zero
// time means now. A rule can fire more than once for a time, and its events have another id then, which Tick does if it is
// called again. Only the bus with the name "default" has scheduled rules
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-rule-schedule.html).
func (b *Bus) Tick(rule string, at time.Time) (id string, err error) {
	switch {
	case b.name != "default" || b.options.Subscriber != nil:
		return "", fmt.Errorf("eventbridgetest: bus is %q, but only the bus \"default\" with a rule has scheduled rules", b.name)
	case !validName(rule, "", 64):
		return "", fmt.Errorf("eventbridgetest: rule name is %q, but must be 1 to 64 letters, digits, dots, underscores and hyphens",
			rule)
	}
	return b.Put(Event{
		Source: "aws.events", DetailType: "Scheduled Event", Detail: "{}", Time: at,
		Resources: []string{arnPrefix + "rule/" + rule},
	})
}

// accept makes e an event of this bus and hands it on.
func (b *Bus) accept(e *event) (id string, err error) {
	if b.options.Subscriber == nil && (e.Group != "" || e.DeduplicationID != "") {
		return "", fmt.Errorf("eventbridgetest: Group is %q and DeduplicationID %q, but must be empty on bus %q, which has a rule",
			e.Group, e.DeduplicationID, b.name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return "", b.errClosed()
	}
	now := time.Now()
	twins := strconv.Quote(e.Group) + e.DeduplicationID
	if twin := b.dedup[twins]; e.DeduplicationID != "" && twin != nil && now.Sub(twin.put) < dedupWindow {
		return twin.id, nil
	}
	e.number = len(b.events) + 1
	e.id = b.seed.UUID("event", b.name, strconv.Itoa(e.number))
	e.put = now
	if e.Time.IsZero() {
		e.Time = now
	}
	b.events = append(b.events, e)
	b.byID[e.id] = e
	if e.DeduplicationID != "" {
		b.dedup[twins] = e
	}
	b.stats.Put++
	b.publish(e, "", now)
	return e.id, nil
}

// publish has an event delivered, for the first time or in a replay. The caller holds b.mu.
func (b *Bus) publish(e *event, replay string, now time.Time) {
	e.deliveries++
	p := part{event: e, json: b.encode(e, replay), since: now}
	if b.options.Subscriber != nil {
		b.pending = append(b.pending, p)
	} else {
		b.enqueue(&work{parts: []part{p}, since: now, due: now})
	}
	b.broadcast()
}

// Redeliver delivers an event once more, at once, although nothing went wrong: while the function works on it, or after it
// is done. EventBridge and Lambda deliver at least once, and do all of this. A subscriber's copy comes in a batch of its own.
func (b *Bus) Redeliver(id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byID[id]
	switch {
	case b.closed:
		return b.errClosed()
	case e == nil:
		return fmt.Errorf("eventbridgetest: event %q was never on bus %q", id, b.name)
	}
	b.duplicate([]part{{event: e, json: b.encode(e, "")}}, time.Now())
	b.broadcast()
	return nil
}

// Store returns a store that belongs to the function: a call within an invocation reaches inner only if the invocation is
// alive, and with the faults of Options.StoreFault. It is the store of lambdatest.Function.Store, which says more.
func (b *Bus) Store(inner idempotency.Store) idempotency.Store { return b.function.Store(inner) }

// Call makes a call of the handler take part in crashes and faults that is no store's: see lambdatest.Function.Call.
func (b *Bus) Call(ctx context.Context, name, key string, apply func() error) error {
	return b.function.Call(ctx, name, key, apply)
}

// Close ends the bus and every invocation that still runs, and lets go the goroutines of dead ones that were parked, as
// lambdatest.Function.Close does. It waits until all calls of Invoke and Observe have returned. If one takes 5 seconds more,
// Close gives up with an error that names its events. Closing twice is allowed.
func (b *Bus) Close() error {
	b.mu.Lock()
	b.closed = true
	b.broadcast()
	b.mu.Unlock()
	return b.function.Close()
}

// broadcast wakes everyone who waits for a change. The caller holds b.mu.
func (b *Bus) broadcast() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// errClosed returns the error of a bus that was closed.
func (b *Bus) errClosed() error {
	return fmt.Errorf("eventbridgetest: bus %q: %w", b.name, lambdatest.ErrClosed)
}

var errNoHandler = errors.New("eventbridgetest: handler is nil")
