package simulation

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/examples/orders/shop"
)

// fate is what is wrong with an order, beyond what happens to any of them.
type fate int

const (
	ordinary    fate = iota
	undecodable      // its message is not JSON
	declined         // its card is declined, for good
	hung             // its first handler never returns and heeds no context
	unrecorded       // the store refuses its first completion, however often it is tried
	fates
)

// maxHung bounds how many orders hang, since each takes a whole function timeout.
const maxHung = 2

// order is one order of the run.
type order struct {
	id   string
	fate fate
	body string // of its message
	// When a second copy of its message is delivered.
	duplicated moment
}

// moment is when a message is delivered a second time.
type moment int

const (
	never    moment = iota
	together        // right behind the first copy, mostly in the same batch
	soon            // a batch later
	late            // after the first round, when most are done
)

// duplicates is how many messages are delivered twice.
const duplicates = 0.12

// newOrders returns n orders. One of each hundred, and at least one, has each of the bad fates; fewer than ten orders
// have none.
func newOrders(d draw.Seed, n int) []order {
	orders := make([]order, n)
	for i := range orders {
		orders[i] = order{id: fmt.Sprintf("order-%04d", i+1)}
		if d.Chance(duplicates, "duplicate", i) {
			orders[i].duplicated = together + moment(d.Number(3, "when", i))
		}
	}
	positions := d.Order(n)
	for f := undecodable; f < fates; f++ {
		count := f.count(n)
		for _, i := range positions[:count] {
			orders[i].fate = f
		}
		positions = positions[count:]
	}
	for i := range orders {
		o := &orders[i]
		o.body = body(d, i, o)
		if o.fate == unrecorded {
			o.duplicated = late // or nobody would notice
		}
	}
	return orders
}

// count returns how many of n orders have the fate, which is a bad one.
func (f fate) count(n int) int {
	switch each := (n + 99) / 100; {
	case n < 10:
		return 0
	case f == hung:
		return min(each, maxHung)
	default:
		return each
	}
}

var (
	catalogue = []shop.Item{
		{SKU: "lamp-brass", Price: 8900}, {SKU: "chair-oak", Price: 14900}, {SKU: "rug-blue", Price: 22900},
		{SKU: "mug-white", Price: 1200}, {SKU: "vase-glass", Price: 3400}, {SKU: "clock-wall", Price: 5600},
	}
	customers = []string{"ada", "edsger", "grace", "barbara", "leslie", "donald", "frances", "tony"}
)

func body(d draw.Seed, i int, o *order) string {
	customer := customers[d.Number(len(customers), "customer", i)]
	content := shop.Order{ID: o.id, Customer: customer + "@example.com", Currency: "EUR", Card: "card_of_" + customer}
	for line := range 1 + d.Number(3, "lines", i) {
		item := catalogue[d.Number(len(catalogue), "item", i, line)]
		item.Quantity = 1 + d.Number(4, "quantity", i, line)
		content.Items = append(content.Items, item)
		content.Amount += int64(item.Quantity) * item.Price
	}
	if o.fate == declined {
		content.Card = shop.CardDeclined
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		panic(err) // it is made of text and numbers
	}
	text := string(encoded)
	if o.fate == undecodable {
		text, _, _ = strings.Cut(text, `,"currency"`) // someone cut the message off
	}
	return text
}

const (
	// How long the provider and the store take.
	minCharge, maxCharge = 5 * time.Millisecond, 30 * time.Millisecond
	minStore, maxStore   = time.Millisecond, 4 * time.Millisecond
)
