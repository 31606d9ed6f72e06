package batch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncekit/oncekit/batch"
)

// broker stands for a source of one's own: it delivers up to ten messages at a time, and again what was not deleted.
type broker struct {
	messages []message
}

type message struct {
	id       string
	customer string // messages of one customer are in order
	body     string
	receives int
}

func (b *broker) receive() []*message {
	var deliveries []*message
	for i := range b.messages[:min(10, len(b.messages))] {
		b.messages[i].receives++
		deliveries = append(deliveries, &b.messages[i])
	}
	return deliveries
}

func (b *broker) delete(ids map[string]bool) {
	var left []message
	for _, m := range b.messages {
		if !ids[m.id] {
			left = append(left, m)
		}
	}
	b.messages = left
}

// A source of one's own: a loop that polls a broker, runs what it gets as a batch, and deletes what is done. The order of
// each customer's messages holds, also where one of them fails and comes back.
func Example() {
	queue := &broker{messages: []message{
		{id: "m1", customer: "ada", body: "open account"},
		{id: "m2", customer: "bob", body: "open account"},
		{id: "m3", customer: "ada", body: "deposit 5"},
		{id: "m4", customer: "bob", body: "withdraw 7"},
		{id: "m5", customer: "ada", body: "withdraw 3"},
	}}
	handle := func(ctx context.Context, r *batch.Record) error {
		m := r.Value.(*message)
		if m.body == "deposit 5" && r.Attempt == 1 {
			return errors.New("ledger is busy")
		}
		return nil
	}

	for deliveries := queue.receive(); len(deliveries) > 0; deliveries = queue.receive() {
		records := make([]batch.Record, len(deliveries))
		for i, m := range deliveries {
			records[i] = batch.Record{ID: m.id, Lane: m.customer, Attempt: m.receives, Value: m}
		}
		report, err := batch.Process(context.Background(), records, handle, func(o *batch.Options) {
			o.Concurrency = 4
			o.Timeout = 10 * time.Second
			o.Logger = slog.New(slog.DiscardHandler)
		})
		if err != nil {
			panic(err) // a wrong option
		}
		done := map[string]bool{}
		for _, result := range report.Results {
			fmt.Println(result.Record.ID, result.Outcome)
			if result.Outcome.Done() {
				done[result.Record.ID] = true
			}
		}
		queue.delete(done)
		fmt.Printf("%d of %d done\n", len(done), len(records))
	}
	// Output:
	// m1 succeeded
	// m2 succeeded
	// m3 failed
	// m4 succeeded
	// m5 skipped
	// 3 of 5 done
	// m3 succeeded
	// m5 succeeded
	// 2 of 2 done
}

// Middleware sees each record that is run, and what its handler returns.
func ExampleMiddleware() {
	audit := func(next batch.Handler) batch.Handler {
		return func(ctx context.Context, r *batch.Record) error {
			err := next(ctx, r)
			fmt.Printf("%s, attempt %d: %v\n", r.ID, r.Attempt, err)
			return err
		}
	}
	records := []batch.Record{{ID: "m1", Attempt: 1}, {ID: "m2", Attempt: 3}}
	_, err := batch.Process(context.Background(), records, func(ctx context.Context, r *batch.Record) error {
		if r.ID == "m2" {
			return errors.New("no such customer")
		}
		return nil
	}, func(o *batch.Options) {
		o.Concurrency = 1
		o.Middleware = []batch.Middleware{audit}
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// m1, attempt 1: <nil>
	// m2, attempt 3: no such customer
}

// A record that will never succeed is given to a sink, and then the rest of its lane goes on.
func ExampleOptions_deadLetter() {
	records := []batch.Record{{ID: "m1", Lane: "ada"}, {ID: "m2", Lane: "ada"}}
	report, err := batch.Process(context.Background(), records, func(ctx context.Context, r *batch.Record) error {
		if r.ID == "m1" {
			return batch.Permanent(errors.New("amount is negative"))
		}
		return nil
	}, func(o *batch.Options) {
		o.MaxAttempts = 5 // and whatever failed five times
		o.DeadLetter = func(ctx context.Context, r *batch.Record, err error) error {
			fmt.Printf("set aside %s: %v\n", r.ID, err)
			return nil // an error means that the sink did not take it: the record fails and comes back
		}
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		panic(err)
	}
	for _, result := range report.Results {
		fmt.Println(result.Record.ID, result.Outcome)
	}
	// Output:
	// set aside m1: amount is negative
	// m1 dead-lettered
	// m2 succeeded
}

// metrics counts records by outcome. It implements two of the hooks.
type metrics struct {
	counts [batch.Abandoned + 1]atomic.Int64
}

func (m *metrics) OnRecordFinished(_ context.Context, result *batch.Result) {
	m.counts[result.Outcome].Add(1)
}

func (m *metrics) OnBatchFinished(_ context.Context, report *batch.Report) {
	fmt.Println(len(report.Results), "records")
	for outcome := batch.Succeeded; outcome <= batch.Abandoned; outcome++ {
		if n := m.counts[outcome].Load(); n > 0 {
			fmt.Printf("%v: %d\n", outcome, n)
		}
	}
}

// A hook is any value with at least one of the On methods, such as one that counts.
func ExampleHook() {
	var records []batch.Record
	for id := range strings.FieldsSeq("m1 m2 m3 m2 m4 m5 m6 m7 m8 m9") { // m2 was delivered twice
		records = append(records, batch.Record{ID: id})
	}
	_, err := batch.Process(context.Background(), records, func(ctx context.Context, r *batch.Record) error {
		if r.ID == "m3" {
			return errors.New("try again")
		}
		return nil
	}, func(o *batch.Options) {
		o.Hooks = []batch.Hook{new(metrics)}
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// 10 records
	// succeeded: 8
	// replayed: 1
	// failed: 1
}

// What a handler's error says about trying again.
func ExamplePermanent() {
	err := fmt.Errorf("order 17: %w", batch.Permanent(errors.New("no such article")))
	fmt.Println(err, batch.IsPermanent(err))

	err = fmt.Errorf("order 18: %w", batch.RetryAfter(time.Minute, errors.New("out of stock")))
	delay, ok := batch.RetryDelay(err)
	fmt.Println(err, batch.IsPermanent(err), delay, ok)
	// Output:
	// order 17: no such article true
	// order 18: out of stock false 1m0s true
}
