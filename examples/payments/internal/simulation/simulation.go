// Package simulation has customers pay by an API like API Gateway's, whose function crashes like Lambda's, and takes down
// what the bank charged.
package simulation

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/examples/internal/evidence"
	"github.com/oncekit/oncekit/examples/payments/payments"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// timeout is the function's. A crash at the start leaves the key held for this long and Skew, which is 1 s by default. A
// customer who sends again each second does so half a second before and after that, so a busy machine makes no difference.
const timeout = 1500 * time.Millisecond

// run is one run.
type run struct {
	function *lambdatest.Function
	handler  lambdatest.Handler
	evidence *evidence.Evidence
	bank     *provider

	mu          sync.Mutex
	invocations int
	struck      map[string]bool // payments that have had their trouble with the function or its table
	result      Result
}

// Run tells all stories at once, each customer's in a goroutine of its own. Nil for the store is a function without a
// guard.
func Run(ctx context.Context, store idempotency.Store) (*Result, error) {
	r := &run{
		evidence: evidence.New("charge"), struck: make(map[string]bool),
		bank: &provider{customers: make(map[string]*customer), calls: make(map[string]int)},
		result: Result{
			Requests: make(map[Reason]int), Answers: make(map[Answer]int), Events: make(map[idempotency.EventKind]int),
		},
	}
	customers := make(map[string]*customer)
	r.function = lambdatest.NewFunction(lambdatest.FunctionOptions{
		Timeout: timeout,
		Crash: func(p lambdatest.Point) bool {
			place := p.Name
			if p.Moment == lambdatest.AfterInvoke {
				place = beforeAnswer
			}
			c := customers[p.RecordIDs[0]]
			return c.trouble.crash == place && place != "" && r.strikes(c)
		},
		StoreFault: func(p lambdatest.Point) (f lambdatest.Fault) {
			if c := customers[p.RecordIDs[0]]; p.Name == "Claim" && c.trouble.throttle && r.strikes(c) {
				f.Err = evidence.ErrThrottled
			}
			return f
		},
	})
	defer r.function.Close()
	if err := r.deploy(store); err != nil {
		return nil, err
	}

	var tell []func(context.Context) error
	for _, s := range stories {
		for range s.payments {
			c := r.newCustomer(len(customers)+1, s.trouble)
			customers[c.name], r.bank.customers[c.payment.Card] = c, c
			tell = append(tell, func(ctx context.Context) error { return s.tell(ctx, c) })
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, t := range tell {
		group.Go(func() error { return t(ctx) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return r.conclude(), nil
}

// deploy makes the function's handler.
func (r *run) deploy(store idempotency.Store) error {
	quiet := slog.New(slog.DiscardHandler)
	if store == nil {
		r.handler = function(payments.NewUnguardedHandler(r.bank, quiet))
		return nil
	}
	guard, err := idempotency.New("payments", r.function.Store(r.evidence.Store(store)), func(o *idempotency.Options) {
		o.Logger = quiet
		o.Hooks = []idempotency.Hook{idempotency.HookFunc(r.count)}
	})
	if err != nil {
		return err
	}
	r.handler = function(payments.NewHandler(r.bank, guard, quiet))
	return nil
}

// function makes a Lambda function of a handler. That of lambda.NewHandler is for one invocation at a time: the memory of an
// answer is free for the next one when Invoke returns.
func function(handle payments.Handler) lambdatest.Handler {
	return lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var request payments.Request
		if err := json.Unmarshal(payload, &request); err != nil {
			return nil, err
		}
		response, err := handle(ctx, request)
		if err != nil {
			return nil, err
		}
		return json.Marshal(response)
	})
}

// newCustomer returns a customer that sends the header if its number is even, and otherwise has the payment's ID do.
func (r *run) newCustomer(number int, t trouble) *customer {
	c := &customer{run: r, name: name(number), trouble: t, gate: newGate()}
	c.payment = payments.Payment{ID: c.name, Amount: int64(1000 + number), Currency: "EUR", Card: "card-of-" + c.name}
	if number%2 == 0 {
		c.key = "key-of-" + c.name
	}
	return c
}

// strikes reports whether this is the first time that it is asked about the customer.
func (r *run) strikes(c *customer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.struck[c.name]
	r.struck[c.name] = true
	return first
}

// count is the hook.
func (r *run) count(_ context.Context, e idempotency.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Events[e.Kind]++
}

func (r *run) gaveUp(c *customer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Unanswered = append(r.result.Unanswered, c.name)
}

// conclude returns a copy of the result: closing the function lets go what a crash has left, which the hook is told of.
func (r *run) conclude() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := r.result
	result.Events = maps.Clone(result.Events)
	result.Unanswered = slices.Compact(slices.Sorted(slices.Values(result.Unanswered)))
	result.Wrong = slices.Compact(slices.Sorted(slices.Values(result.Wrong)))

	charges := make(map[string][]charge)
	for _, c := range r.bank.ledger {
		charges[c.ID] = append(charges[c.ID], c)
		result.Charges++
	}
	number := 0
	for _, s := range stories {
		told := Told{Name: s.name, Note: s.note, Payments: s.payments}
		for range s.payments {
			number++
			made := charges[name(number)]
			told.Charges += len(made)
			if len(made) == 0 {
				if !s.trouble.declines {
					result.Lost = append(result.Lost, name(number))
				}
				continue
			}
			result.Charged++
			for i, again := range made[1:] {
				repeat := Repeat{Payment: name(number)}
				repeat.Cause, repeat.Unexplained = r.evidence.Excuse(made[i].Effect, again.Effect)
				if made[i].Key == again.Key {
					repeat.Key = again.Key
				}
				result.Repeats = append(result.Repeats, repeat)
			}
		}
		result.Stories = append(result.Stories, told)
	}
	return &result
}
