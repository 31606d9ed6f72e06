// Package billing is the business of the example, with nothing of Lambda, EventBridge or oncekit in it: orders, and a system
// that writes their invoices.
package billing

// Order is what a customer has ordered, as the shop publishes it in the detail of an event.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Amount   int64  `json:"amount"` // in the smallest unit of the currency
	Currency string `json:"currency"`
}

// The source and the detail type of the shop's events.
const (
	Source     = "com.example.shop"
	DetailType = "order placed"
)
