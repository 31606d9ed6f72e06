package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// claimRounds is how often a claim is written by statements: one for a key that seems absent, another for what was found
// instead. Who is refused both times meets others who want the key, and is left to the single call.
const claimRounds = 2

// ClaimAll implements idempotency.BulkStore with an INSERT for each key, 25 to a call. Keys that exist are read, 100 to a
// call, and what is free of them is taken over by an UPDATE of exactly what was read. Requests that ask first are read
// first.
func (s *Store) ClaimAll(ctx context.Context, requests []idempotency.ClaimRequest) []idempotency.ClaimAnswer {
	answers := make([]idempotency.ClaimAnswer, len(requests))
	if s.err != nil {
		for i := range answers {
			answers[i].Err = s.err
		}
		return answers
	}
	b := bulkClaim{store: s, ctx: ctx, requests: requests, answers: answers}
	for _, pass := range passes(len(requests), func(i int) string { return requests[i].Key }) {
		if s.oneByOne(claims) {
			s.each(pass, func(i int) { b.one(i, requests[i].AskFirst) })
			continue
		}
		b.run(pass)
	}
	return answers
}

// bulkClaim is one call of ClaimAll.
type bulkClaim struct {
	store    *Store
	ctx      context.Context
	requests []idempotency.ClaimRequest
	answers  []idempotency.ClaimAnswer
	seen     map[int]*seen // what was read last for a request
	alone    []int         // requests that are left to the single call
}

// one makes the single call.
func (b *bulkClaim) one(i int, askFirst bool) {
	r := b.requests[i]
	r.AskFirst = askFirst
	result, err := b.store.Claim(b.ctx, r)
	b.answers[i] = idempotency.ClaimAnswer{ClaimResult: result, Err: err}
}

// run claims keys of which none is another.
func (b *bulkClaim) run(requests []int) {
	s := b.store
	b.alone = b.alone[:0]
	// An INSERT into a table that has no such sort key would take it for any other attribute, and make one item of all
	// keys. A read is refused. So all are read until one was.
	check := s.options.sorted() && !s.bulk.hasKey.Load()
	open, ask := make([]int, 0, len(requests)), []int(nil)
	for _, i := range requests {
		r := &b.requests[i]
		if r.CountAttempts {
			s.bulk.counted.Store(true)
		}
		switch {
		case !s.keyFits(r.Key):
			b.alone = append(b.alone, i)
		case r.AskFirst || check:
			ask = append(ask, i)
		default:
			open = append(open, i)
		}
	}
	open = append(open, b.look(ask, !check)...)
	for round := 0; round < claimRounds && len(open) > 0; round++ {
		writes := b.writes(open)
		s.write(b.ctx, claims, writes)
		open = b.look(b.settle(writes), false)
	}
	s.each(append(b.alone, open...), func(i int) { b.one(i, false) })
}

// writes returns the statements for requests.
func (b *bulkClaim) writes(requests []int) []write {
	s := b.store
	writes := make([]write, 0, len(requests))
	v := newParameters(len(requests), 6, 4)
	for _, i := range requests {
		r := &b.requests[i]
		w := write{request: i, key: r.Key}
		if e := b.seen[i]; e != nil && e.Status != idempotency.Absent {
			w.text, w.parameters = s.bulk.texts.takeover(v, r, e)
		} else {
			w.text = s.bulk.texts.insert[index(r.Fingerprint != "")][index(r.CountAttempts)]
			w.parameters = v.insert(&s.options, r)
		}
		if w.text == nil {
			b.alone = append(b.alone, i)
			continue
		}
		writes = append(writes, w)
	}
	return writes
}

// insert returns the parameters of an INSERT.
func (p *parameters) insert(o *Options, r *idempotency.ClaimRequest) []types.AttributeValue {
	start := len(p.list)
	p.key(o, r.Key)
	p.add(p.text(r.Owner), p.lease(o, r.Lease), p.expiry(r.Expiry))
	if r.Fingerprint != "" {
		p.add(p.text(r.Fingerprint))
	}
	return p.since(start)
}

// settle answers the requests whose writes have decided them, and returns those that were refused.
func (b *bulkClaim) settle(writes []write) []int {
	var refusals []int
	for i := range writes {
		w := &writes[i]
		r, answer := &b.requests[w.request], &b.answers[w.request]
		switch w.outcome {
		case applied:
			attempts := 0
			e := b.seen[w.request]
			if e != nil {
				answer.TookOver = e.tookOver()
				attempts = e.attemptsBefore(r)
			}
			if r.CountAttempts {
				attempts++
			} else {
				attempts = 0
			}
			answer.Claimed, answer.Entry = true, b.store.claimEntry(r, attempts)
		case refused:
			refusals = append(refusals, w.request)
		case single:
			b.alone = append(b.alone, w.request)
		default:
			answer.Err = w.err
		}
	}
	return refusals
}

// look reads the keys of requests, answers those that are decided by that, and returns those that can be claimed. With
// unsure it returns those as well that could not be read, as if nothing had been found.
func (b *bulkClaim) look(requests []int, unsure bool) []int {
	if len(requests) == 0 {
		return nil
	}
	keys := make([]string, len(requests))
	for j, i := range requests {
		keys[j] = b.requests[i].Key
	}
	results := b.store.read(b.ctx, claims, keys)
	var open []int
	for j, i := range requests {
		r, answer, now := &b.requests[i], &b.answers[i], &results[j]
		switch before := b.seen[i]; {
		case now.outcome == single:
			b.alone = append(b.alone, i)
		case now.outcome == failed && unsure:
			open = append(open, i)
		case now.err != nil:
			answer.Err = now.err
		case now.Status == idempotency.InProgress && now.Owner == r.Owner:
			// The SDK sent the statement twice: the first one was applied and its reply was lost.
			answer.Claimed, answer.Entry = true, now.Entry
			answer.TookOver = before != nil && before.tookOver()
		case !free(now.Entry, *r):
			answer.Entry = now.Entry
		default:
			if b.seen == nil {
				b.seen = make(map[int]*seen)
			}
			b.seen[i] = now
			open = append(open, i)
		}
	}
	return open
}
