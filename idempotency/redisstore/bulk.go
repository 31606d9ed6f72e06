package redisstore

import (
	"context"
	"slices"

	"github.com/oncekit/oncekit/idempotency"
)

// pipelined is how many commands go into one round trip. A server takes some hundredths of a millisecond for each, and the
// first record of a call waits for the last.
const pipelined = 100

// BulkSizes implements idempotency.BulkStore: 100 of each where the client is a Pipeliner. Without, calls for many gain
// nothing.
func (s *Store) BulkSizes() idempotency.BulkSizes {
	if s.pipeliner == nil {
		return idempotency.BulkSizes{}
	}
	return idempotency.BulkSizes{Claims: pipelined, Settle: pipelined}
}

// ClaimAll implements idempotency.BulkStore with one script a request, a hundred in a round trip.
func (s *Store) ClaimAll(ctx context.Context, requests []idempotency.ClaimRequest) []idempotency.ClaimAnswer {
	answers := make([]idempotency.ClaimAnswer, len(requests))
	for i, reply := range s.doAll(ctx, &s.claim, calls(requests, claimCall)) {
		answers[i].ClaimResult, answers[i].Err = s.claimed(requests[i], reply)
	}
	return answers
}

// CompleteAll implements idempotency.BulkStore with one script a request, a hundred in a round trip.
func (s *Store) CompleteAll(ctx context.Context, requests []idempotency.CompleteRequest) []error {
	return answers(requests, s.doAll(ctx, &s.complete, calls(requests, completeCall)), s.completed)
}

// ReleaseAll implements idempotency.BulkStore with one script a request, a hundred in a round trip.
func (s *Store) ReleaseAll(ctx context.Context, requests []idempotency.ReleaseRequest) []error {
	return answers(requests, s.doAll(ctx, &s.release, calls(requests, releaseCall)), s.released)
}

// RenewAll implements idempotency.BulkStore with one script a request, a hundred in a round trip.
func (s *Store) RenewAll(ctx context.Context, requests []idempotency.RenewRequest) []error {
	return answers(requests, s.doAll(ctx, &s.renew, calls(requests, renewCall)), s.renewed)
}

func calls[R any](requests []R, toCall func(R) call) []call {
	calls := make([]call, len(requests))
	for i, r := range requests {
		calls[i] = toCall(r)
	}
	return calls
}

func answers[R any](requests []R, replies []Reply, read func(R, Reply) error) []error {
	errs := make([]error, len(replies))
	for i, reply := range replies {
		errs[i] = read(requests[i], reply)
	}
	return errs
}

// doAll runs a script for each call, as many at a time as go best together.
func (s *Store) doAll(ctx context.Context, script *script, calls []call) []Reply {
	replies := make([]Reply, 0, len(calls))
	for chunk := range slices.Chunk(calls, pipelined) {
		if s.pipeliner != nil && len(chunk) > 1 && s.err == nil && ctx.Err() == nil {
			replies = append(replies, s.doTogether(ctx, script, chunk)...)
			continue
		}
		for _, c := range chunk {
			replies = append(replies, s.do(ctx, script, c))
		}
	}
	return replies
}

// doTogether runs a script for each call in one round trip, or two if a server does not know it yet.
func (s *Store) doTogether(ctx context.Context, script *script, calls []call) []Reply {
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	commands := make([]Command, len(calls))
	for i, c := range calls {
		commands[i] = s.command(script, c)
	}
	replies := s.pipeline(ctx, commands)

	// A server that does not know the script knows it for none of its keys, so what is sent again keeps its order.
	var unknown []int
	var again []Command
	for i, reply := range replies {
		if hasCode(reply.Err, noScript) {
			unknown, again = append(unknown, i), append(again, asText(script, commands[i]))
		}
	}
	if len(again) > 0 {
		for i, reply := range s.pipeline(ctx, again) {
			replies[unknown[i]] = reply
		}
	}
	for i, c := range calls {
		replies[i] = s.checked(c.key, replies[i])
	}
	return replies
}

// pipeline sends commands in one round trip. Its replies are its own to change. A client that answers with another number
// of replies has answered nothing, and all is undecided: see checked.
func (s *Store) pipeline(ctx context.Context, commands []Command) []Reply {
	replies := make([]Reply, len(commands))
	if got := s.pipeliner.DoAll(ctx, commands); len(got) == len(commands) {
		copy(replies, got)
	}
	return replies
}
