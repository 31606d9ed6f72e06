package simulation

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/oncekit/oncekit/examples/invoices/invoices"
)

// Result is what has happened in a simulation.
type Result struct {
	Orders    int
	Published int // again: events of an order beyond its first
	Events    int // the sum of the two

	ByRule, ByQueue int // deliveries that each event was published for
	Copies          int // deliveries without a reason
	Replayed        int // deliveries out of the archive
	ByLambda        int // deliveries after a failure or a crash: asynchronous invocations that Lambda has tried again
	BySQS           int // and messages that came back
	Deliveries      int // the sum of all these

	Invoiced int // orders, each counted once
	Invoices int // all that were written
	// Repeats are the invoices of an order beyond its first. Only with a guard do they have a cause.
	Repeats []Repeat
	// GivenUp are the orders of which an event went to a dead-letter queue.
	GivenUp []GivenUp
	// Lost are the orders that were neither invoiced nor given up.
	Lost []string

	NotRun  int // deliveries of what was done before
	Crashes int // invocations that crashed
	Errors  int // calls of the billing system that failed

	// Again is what a replay does with RunReplays, nil without a guard. Its invoices count nowhere else.
	Again *Again
}

// Again is what has become of a replay that was to run again.
type Again struct {
	Events   int // that were replayed
	Keys     int // under which invoices were written before
	Invoices int // that were written again
	Orders   int // that these are for
}

// Repeat is an order that was invoiced once more.
type Repeat struct {
	Order string
	// First and Again say by which way and which of its invocations the invoices were written.
	First, Again string
	// Cause is why nobody knew of the first one: never more than what was seen to happen.
	Cause string
	// OtherKey is whether the second invoice has another key, since the order was published twice.
	OtherKey bool
	// Unexplained is whether the guard had no excuse.
	Unexplained bool
}

// String names the order, the cause and the invocations.
func (r Repeat) String() string {
	return fmt.Sprintf("%s: %s (invoiced by %s, and again by %s)", r.Order, r.Cause, r.First, r.Again)
}

// GivenUp is an order of which an event went to a dead-letter queue.
type GivenUp struct {
	Order string
	// How says in which queues the event is, and why.
	How []string
	// Invoiced is by which invocation the order was invoiced all the same, or empty.
	Invoiced string
}

// String names the order, how it was given up, and what became of it.
func (g GivenUp) String() string {
	text := g.Order + ": moved " + strings.Join(g.How, ", and ")
	if g.Invoiced != "" {
		text += "; invoiced all the same by " + g.Invoiced
	}
	return text
}

// NeverInvoiced returns how many orders are in a dead-letter queue and were never invoiced.
func (r *Result) NeverInvoiced() int {
	n := 0
	for _, g := range r.GivenUp {
		if g.Invoiced == "" {
			n++
		}
	}
	return n
}

// Unexplained returns how many repeats the guard had no excuse for.
func (r *Result) Unexplained() int {
	n := 0
	for _, repeat := range r.Repeats {
		if repeat.Unexplained {
			n++
		}
	}
	return n
}

// PublishedTwice returns how many repeats have a key of their own.
func (r *Result) PublishedTwice() int {
	n := 0
	for _, repeat := range r.Repeats {
		if repeat.OtherKey {
			n++
		}
	}
	return n
}

// result counts what has happened.
func (s *simulation) result() *Result {
	bus, queue := s.bus.Stats(), s.queue.Stats()
	all := s.system.all()
	r := &Result{
		Orders: len(s.orders), Events: len(s.events), Published: len(s.events) - len(s.orders),
		ByRule: len(s.events), ByQueue: len(s.events), Copies: bus.Duplicates + queue.Duplicates,
		Replayed: bus.Replayed + queue.Sent - len(s.events), Deliveries: bus.Invocations + queue.Receives,
		Invoices: len(all), NotRun: s.replayed, Crashes: bus.Crashes + queue.Crashes, Errors: s.system.failures(),
	}
	r.ByLambda = bus.Invocations - bus.Put - bus.Replayed - bus.Duplicates
	r.BySQS = queue.Receives - queue.Sent - queue.Duplicates
	r.Invoiced = len(s.system.byOrder())
	r.Repeats = s.repeats(all)
	s.giveUps(r)
	return r
}

// repeats returns the invoices beyond the first of their orders, in the order written.
func (s *simulation) repeats(all []invoice) []Repeat {
	var repeats []Repeat
	first := make(map[string]invoice)  // of an order
	latest := make(map[string]invoice) // of a key
	for _, i := range all {
		before, again := first[i.order]
		if !again {
			first[i.order] = i
		} else {
			r := Repeat{Order: i.order}
			switch same, known := latest[i.key]; {
			case s.guard == nil:
			case !known:
				r.OtherKey, r.Unexplained = true, s.config.Key != invoices.ByEvent
				r.Cause = "it was published twice, in events with two ids"
			default:
				before = same
				r.Cause, r.Unexplained = s.evidence.Excuse(same.effect(), i.effect())
			}
			r.First, r.Again = invocationName(before.invocation), invocationName(i.invocation)
			repeats = append(repeats, r)
		}
		latest[i.key] = i
	}
	return repeats
}

func invocationName(number int) string {
	w, invocation := wayOf(number)
	return fmt.Sprintf("invocation %d of the %s", invocation, w)
}

// giveUps says which orders are in a dead-letter queue, and which are nowhere.
func (s *simulation) giveUps(r *Result) {
	how := make(map[string][]string)
	order := make(map[string]string) // by event
	for _, e := range s.events {
		order[e.id] = e.order
	}
	for _, l := range s.bus.DeadLetters() {
		o := order[l.IDs[0]]
		how[o] = append(how[o], fmt.Sprintf("by Lambda after %d attempts", l.Invocations))
	}
	for _, h := range s.queue.Histories() {
		if h.DeadLettered.IsZero() {
			continue
		}
		var o struct{ ID string }
		if err := json.Unmarshal([]byte(h.Message.Body), &o); err != nil {
			panic(err) // it was made here
		}
		how[order[o.ID]] = append(how[order[o.ID]], fmt.Sprintf("by SQS after %d receives", len(h.Received)))
	}
	written := s.system.byOrder()
	for _, o := range s.orders {
		if n := s.letters[o.ID]; n > 0 {
			how[o.ID] = append(how[o.ID], fmt.Sprintf("by the function, %d times: %v", n, s.reasons[o.ID]))
		}
		invoiced := ""
		if i := written[o.ID]; len(i) > 0 {
			invoiced = invocationName(i[0].invocation)
		}
		switch {
		case len(how[o.ID]) > 0:
			r.GivenUp = append(r.GivenUp, GivenUp{Order: o.ID, How: how[o.ID], Invoiced: invoiced})
		case invoiced == "":
			r.Lost = append(r.Lost, o.ID)
		}
	}
}
