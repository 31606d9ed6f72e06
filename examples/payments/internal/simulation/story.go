package simulation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// story is what happens to a payment, and how many payments it happens to.
type story struct {
	name, note string
	payments   int
	tell       func(ctx context.Context, c *customer) error
	trouble    trouble
}

// trouble is what goes wrong at the payment's first chance.
type trouble struct {
	crash    string // where: beforeCharge, afterCharge or beforeAnswer
	throttle bool   // the table refuses the first claim
	bankDown bool
	declines bool // the bank declines the card, always
	bankIdle bool // the bank keeps the first call waiting until gate.open is closed
}

// The places of crashes. The first two are checkpoints of the bank.
const (
	beforeCharge = "before the charge"
	afterCharge  = "after the charge"
	beforeAnswer = "before the answer"
)

var stories = []story{
	{name: "sent once", note: "and answered", payments: 10, tell: pays},
	{
		name: "clicked twice", note: "the second while the first is in progress",
		payments: 4, tell: overlaps(Click), trouble: trouble{bankIdle: true},
	},
	{
		name: "client's timeout", note: "it sends again while the first is in progress",
		payments: 4, tell: overlaps(Again), trouble: trouble{bankIdle: true},
	},
	{name: "answer lost on its way", note: "the client sends again after the charge", payments: 4, tell: losesAnswer},
	{name: "amount changed", note: "the same key again, for ten times as much", payments: 2, tell: changesAmount},
	{name: "declined card", note: "sent twice, and never charged", payments: 1, tell: losesAnswer, trouble: trouble{declines: true}},
	{name: "no key", note: "neither header nor ID, at first", payments: 1, tell: forgetsKey},
	{name: "bank down", note: "at first", payments: 2, tell: pays, trouble: trouble{bankDown: true}},
	{name: "table throttled", note: "at first", payments: 2, tell: pays, trouble: trouble{throttle: true}},
	{
		name: "crash before the charge", note: "in the middle of the function's work",
		payments: 1, tell: pays, trouble: trouble{crash: beforeCharge},
	},
	{
		name: "crash after the charge", note: "before anything could be stored",
		payments: 1, tell: pays, trouble: trouble{crash: afterCharge},
	},
	{
		name: "crash before the answer", note: "after all was stored",
		payments: 1, tell: pays, trouble: trouble{crash: beforeAnswer},
	},
}

// Payments returns how many payments there are.
func Payments() int {
	n := 0
	for _, s := range stories {
		n += s.payments
	}
	return n
}

// pays sends the payment until there is an answer to it.
func pays(ctx context.Context, c *customer) error {
	status, err := c.send(ctx, First)
	if err != nil {
		return err
	}
	return c.insist(ctx, status)
}

// overlaps sends the payment once more while the first request is with the bank. Nobody waits for the first answer.
func overlaps(reason Reason) func(context.Context, *customer) error {
	return func(ctx context.Context, c *customer) error {
		first := make(chan error, 1)
		go func() {
			_, err := c.send(ctx, First)
			first <- err
		}()
		select {
		case <-c.gate.reached:
		case err := <-first: // it never got to the bank
			first <- err
		}
		status, err := c.send(ctx, reason)
		close(c.gate.open)
		if err := errors.Join(<-first, err); err != nil {
			return err
		}
		return c.insist(ctx, status)
	}
}

func losesAnswer(ctx context.Context, c *customer) error {
	if err := pays(ctx, c); err != nil {
		return err
	}
	status, err := c.send(ctx, Again)
	if err != nil {
		return err
	}
	return c.insist(ctx, status)
}

func changesAmount(ctx context.Context, c *customer) error {
	if err := pays(ctx, c); err != nil {
		return err
	}
	c.payment.Amount *= 10
	status, err := c.send(ctx, Changed)
	if err != nil {
		return err
	}
	return c.insist(ctx, status)
}

func forgetsKey(ctx context.Context, c *customer) error {
	id, key := c.payment.ID, c.key
	c.payment.ID, c.key = "", ""
	status, err := c.send(ctx, First)
	if err != nil || status != http.StatusBadRequest {
		return err
	}
	c.payment.ID, c.key = id, key
	status, err = c.send(ctx, Again)
	if err != nil {
		return err
	}
	return c.insist(ctx, status)
}

// name is that of the number-th payment.
func name(number int) string { return fmt.Sprintf("payment-%02d", number) }
