package simulation

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
)

// step is what happens to an order in the table.
type step int

const (
	place   step = iota // it is put into the table
	amend               // its total changes
	pay                 // its status changes, as by the next two
	pack                //
	ship                //
	cancel              // it is deleted by a request
	hold                // it is put into the table, to expire unless it is paid
	expire              // it is deleted by TTL
	corrupt             // its total becomes a text, which no handler can read
)

// life returns the steps of an order, from first to last. One order of the run is corrupted, in its second half.
func life(d draw.Seed, order, orders int) []step {
	if order == orders*3/4 {
		return []step{place, pay, pack, ship, corrupt}
	}
	if d.Chance(0.15, "held", order) {
		return []step{hold, amend, expire}
	}
	steps := []step{place}
	for range d.Number(3, "amendments", order) {
		steps = append(steps, amend)
	}
	if d.Chance(0.15, "cancelled", order) {
		return append(steps, pay, cancel)
	}
	return append(steps, pay, pack, ship)
}

// todo is one step of one order.
type todo struct {
	order string
	step  step
}

// newPlan returns the steps of all orders, mixed, but each order's in their order.
func newPlan(d draw.Seed, orders int) []todo {
	lives := make([][]step, orders)
	var open []int // orders that have steps left
	for i := range lives {
		lives[i] = life(d, i, orders)
		open = append(open, i)
	}
	var plan []todo
	for len(open) > 0 {
		// Of the first few only, so that an order's steps are near each other, as they are in a stream.
		at := d.Number(min(len(open), atWork), "next", len(plan))
		i := open[at]
		plan = append(plan, todo{orderID(i), lives[i][0]})
		if lives[i] = lives[i][1:]; len(lives[i]) == 0 {
			open = append(open[:at], open[at+1:]...)
		}
	}
	return plan
}

// atWork is how many orders are changed at about the same time.
const atWork = 12

func orderID(i int) string { return fmt.Sprintf("order-%04d", i+1) }

// expiry is when orders that are held expire: 1 December 2026, 0:00 UTC. The simulation does not wait for it.
const expiry = 1796083200

var customers = []string{"ada", "edsger", "grace", "barbara", "leslie", "donald", "frances", "tony"}

// take takes a step in the table.
func (t todo) take(d draw.Seed, table *dynamodbstreamtest.Table) (dynamodbstreamtest.Change, error) {
	key := dynamodbstreamtest.Item{"id": events.NewStringAttribute(t.order)}
	switch t.step {
	case place, hold:
		item := dynamodbstreamtest.Item{
			"id":       key["id"],
			"version":  events.NewNumberAttribute("1"),
			"customer": events.NewStringAttribute(customers[d.Number(len(customers), "customer", t.order)]),
			"status":   events.NewStringAttribute("placed"),
			"total":    number(100 * (10 + d.Number(200, "total", t.order))),
		}
		if t.step == hold {
			item["status"], item["expires"] = events.NewStringAttribute("held"), number(expiry)
		}
		return table.Put(item)
	case cancel:
		return table.Delete(key)
	case expire:
		return table.Expire(key)
	}
	return table.Update(key, func(item dynamodbstreamtest.Item) {
		version, err := item["version"].Integer()
		if err != nil {
			panic(err) // the number was made here
		}
		item["version"] = number(int(version) + 1)
		switch t.step {
		case amend:
			item["total"] = number(100 * (10 + d.Number(200, "total", t.order, version)))
		case pay:
			item["status"] = events.NewStringAttribute("paid")
		case pack:
			item["status"] = events.NewStringAttribute("packed")
		case ship:
			item["status"] = events.NewStringAttribute("shipped")
		case corrupt:
			item["total"] = events.NewStringAttribute("89,00 EUR")
		}
	})
}

func number(n int) events.DynamoDBAttributeValue { return events.NewNumberAttribute(strconv.Itoa(n)) }
