package simulation

import (
	"github.com/oncekit/oncekit/idempotency"
)

// Result is what came of a run.
type Result struct {
	// Requests counts what was sent, and Answers what came back. Their sums are equal.
	Requests map[Reason]int
	Answers  map[Answer]int
	// Stories are in the order in which Run tells them.
	Stories []Told
	// Charges is what the bank did, and Charged how many payments it charged at least once.
	Charges, Charged int
	// Repeats are the charges of a payment beyond its first.
	Repeats []Repeat
	// Lost are payments that were to be charged and were not. Unanswered are those whose customer gave up. Wrong are those
	// whose customer was told of a charge that the bank did not make.
	Lost, Unanswered, Wrong []string
	// Events is what a hook of the guard has counted.
	Events map[idempotency.EventKind]int
}

// Reason is why a request is sent.
type Reason string

// The reasons for requests.
const (
	First   Reason = "first"
	Click   Reason = "click"   // the customer clicks twice
	Again   Reason = "again"   // there was no answer, or one that asks for that
	Changed Reason = "changed" // the same payment with another amount
)

// Answer is what a request was answered with.
type Answer string

// The answers.
const (
	Created     Answer = "201"
	Replayed    Answer = "201 replayed"
	Declined    Answer = "402"
	KeyMissing  Answer = "400"
	InProgress  Answer = "409"
	Mismatch    Answer = "422"
	Unavailable Answer = "503"
	NoAnswer    Answer = "500" // the API's own, when the function crashed
)

// Told is what came of a story.
type Told struct {
	Name, Note        string
	Payments, Charges int
}

// Repeat is a charge of a payment that was charged before.
type Repeat struct {
	Payment, Cause string
	Unexplained    bool
	Key            string // that the bank was given both times, or empty
}

// Unexplained returns how many charges were repeated without a reason.
func (r *Result) Unexplained() int {
	n := 0
	for _, repeat := range r.Repeats {
		if repeat.Unexplained {
			n++
		}
	}
	return n
}
