package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
)

// lateReplies stores completions and loses the replies, twice.
type lateReplies struct {
	idempotency.BulkStore
	asked [][]idempotency.CompleteRequest
}

func (s *lateReplies) CompleteAll(ctx context.Context, requests []idempotency.CompleteRequest) []error {
	s.asked = append(s.asked, requests)
	errs := s.BulkStore.CompleteAll(ctx, requests)
	if len(s.asked) <= 2 {
		for i := range errs {
			errs[i] = errors.New("no reply")
		}
	}
	return errs
}

// A completion that is sent again is the same completion: the first one counts, if it was stored, and with it the moment
// from which the key lives.
func TestCompletionsAreSentAgainAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lateReplies{BulkStore: storetest.Bulk(idempotency.NewMemoryStore())}
		guard, err := idempotency.New("orders", store)
		if err != nil {
			t.Fatal(err)
		}
		claims, errs := guard.ClaimAll(t.Context(), []idempotency.Request{{Key: "a"}, {Key: "b"}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		endings := []idempotency.Ending{idempotency.EndComplete, idempotency.EndComplete}
		if err := errors.Join(guard.SettleAll(t.Context(), claims, endings)...); err != nil {
			t.Fatal(err)
		}
		if len(store.asked) != 3 {
			t.Fatalf("%d calls, want 3", len(store.asked))
		}
		for _, again := range store.asked[1:] {
			if diff := cmp.Diff(store.asked[0], again); diff != "" {
				t.Errorf("requests of a further call (-first +further):\n%s", diff)
			}
		}
	})
}
