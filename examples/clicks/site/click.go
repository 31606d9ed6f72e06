// Package site is the business of the example, with nothing of Lambda, streams or oncekit in it: the clicks of a web site's
// visitors, and the journeys that they make up.
package site

// Click is what a visitor clicked on, as it stands in a record's data.
type Click struct {
	ID      string `json:"id"`
	Visitor string `json:"visitor"`
	Page    string `json:"page"`
}
