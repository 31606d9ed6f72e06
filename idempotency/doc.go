// Package idempotency keeps work that is delivered more than once from being done again. What is promised is below.
//
// A Guard has a namespace and a Store. Under a key it lets one caller at a time do a piece of work, remembers that the
// work is done until the key expires, and answers later callers without doing it again:
//
//	guard, err := idempotency.New("payments", store)
//	...
//	result, err := idempotency.Do(ctx, guard, order.ID, func(ctx context.Context) (Receipt, error) {
//		return charge(ctx, order)
//	})
//
// Wrap makes such a call of any function with one input: a handler behind API Gateway, a task of Step Functions, one that
// is no Lambda function at all. Handlers of the sources (package sqs and its siblings) take a Guard as an option and do the
// same for each record.
//
// A Hook in Options.Hooks is told of all that happens to keys: what was run, replayed, refused, taken over or lost.
//
// # What is promised
//
// No work is started while a live claim holds its key, nor after its completion was stored, for as long as the key
// lives, in one Region's table, with clocks within Options.Skew of each other. Work already started can repeat, or
// overlap its repeat, if its completion was not stored before its lease ended: after a crash, after a function that
// ignored its cancelled context, after a completion that the store refused.
//
// # The states of a key
//
//	absent -> INPROGRESS(owner, lease) -> COMPLETED(result) -> expired, which is absent
//
// A failed attempt releases its claim, which makes the key absent again. A claim whose lease has run out can be taken
// over. Every claim has an owner token of its own, and only the owner can complete, release or renew it, so a worker
// that wakes up late changes nothing that is not its own. See Store for the transitions.
package idempotency
