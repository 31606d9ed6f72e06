// Package audit is the function of the example: the changes of a table of orders become the rows of a log. It runs on
// Lambda, in the simulation and in the tests.
package audit

import (
	"strconv"
	"time"
)

// Order is an item of the table. Every write increments Version.
type Order struct {
	ID        string `dynamodbav:"id"`
	Version   int64  `dynamodbav:"version"`
	Customer  string `dynamodbav:"customer"`
	Status    string `dynamodbav:"status"`
	Total     int64  `dynamodbav:"total"`             // in the smallest unit of the currency
	ExpiresAt int64  `dynamodbav:"expires,omitempty"` // the table's TTL attribute, in seconds since 1970; 0 means never
}

// audited is what the log tells of, by the names of the table's attributes.
var audited = []struct {
	attribute string
	value     func(*Order) string
}{
	{"customer", func(o *Order) string { return o.Customer }},
	{"status", func(o *Order) string { return o.Status }},
	{"total", func(o *Order) string { return strconv.FormatInt(o.Total, 10) }},
	{"expires", func(o *Order) string {
		if o.ExpiresAt == 0 {
			return ""
		}
		return time.Unix(o.ExpiresAt, 0).UTC().Format(time.RFC3339)
	}},
}

// Difference is an attribute whose value a change has changed. A value that is not there is empty.
type Difference struct {
	Attribute string `dynamodbav:"attribute"`
	From      string `dynamodbav:"from"`
	To        string `dynamodbav:"to"`
}

// Differences returns what is different between two states of an order. Nil stands for an order that is not there.
func Differences(before, after *Order) []Difference {
	var differences []Difference
	for _, a := range audited {
		d := Difference{Attribute: a.attribute}
		if before != nil {
			d.From = a.value(before)
		}
		if after != nil {
			d.To = a.value(after)
		}
		if d.From != d.To {
			differences = append(differences, d)
		}
	}
	return differences
}
