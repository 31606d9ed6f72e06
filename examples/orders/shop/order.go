// Package shop is the business of the example, with nothing of Lambda, queues or oncekit in it: orders, and a provider
// that charges them.
package shop

// Order is what a customer ordered, as it stands in a message's body.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Items    []Item `json:"items"`
	Amount   int64  `json:"amount"` // in the smallest unit of the currency
	Currency string `json:"currency"`
	Card     string `json:"card"` // the provider's token for it
}

// Item is one line of an order.
type Item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Price    int64  `json:"price"`
}

// IdempotencyKey makes the order's ID the key of its message. The shop may send an order twice, and a redrive from the
// dead-letter queue gives the message another messageId; the order stays the same.
func (o Order) IdempotencyKey() string { return o.ID }
