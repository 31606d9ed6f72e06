package pipeline

import (
	"context"
	"errors"
	"testing"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
)

// releases keeps the releases that a store is asked for.
type releases struct {
	idempotency.MemoryStore
	requests []idempotency.ReleaseRequest
}

func (s *releases) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	s.requests = append(s.requests, r)
	return s.MemoryStore.Release(ctx, r)
}

// A record whose time is up between its claim and its handler was not attempted. The engine hits that moment too rarely
// to test it from outside.
func TestSettleUnstarted(t *testing.T) {
	for _, test := range []struct {
		outcome   batch.Outcome
		unstarted bool
	}{{batch.Skipped, true}, {batch.Failed, false}} {
		store := &releases{}
		guard, err := idempotency.New("test", store)
		if err != nil {
			t.Fatal(err)
		}
		claim, err := guard.Claim(t.Context(), idempotency.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		g := &guarded{entries: []entry{{claim: claim}}}
		settled := []batch.Settlement{{Outcome: test.outcome, Err: batch.ErrDeadlineNear}}
		g.Settle(t.Context(), []int{0}, settled)
		s := settled[0]
		if s.Outcome != test.outcome || !errors.Is(s.Err, batch.ErrDeadlineNear) {
			t.Errorf("settled as %+v, want it as it was: %v", s, test.outcome)
		}
		if len(store.requests) != 1 || store.requests[0].Unstarted != test.unstarted {
			t.Errorf("%v: releases %+v, want one with Unstarted %v", test.outcome, store.requests, test.unstarted)
		}
	}
}
