package idempotency

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is asked of a store, its queue holds each of its items once, in the second that it belongs in.
func TestMemoryStoreQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewMemoryStore(func(o *MemoryOptions) { o.MaxEntries = 5 })
		now := time.Unix(1_800_000_000, 0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "key"))
			later := func(name string) time.Time {
				return now.Add(time.Duration(rapid.IntRange(1, 6).Draw(t, name)) * time.Second)
			}
			// What is refused is refused: the answers are for the conformance suite to look at.
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				lease := later("lease")
				_, _ = s.Claim(t.Context(), ClaimRequest{
					Key: key, Owner: key, Now: now, Lease: lease, Expiry: lease.Add(2 * time.Second), Skew: time.Second,
				})
			case 1:
				_ = s.Complete(t.Context(), CompleteRequest{Key: key, Owner: key, Now: now, Expiry: later("expiry")})
			case 2:
				_ = s.Release(t.Context(), ReleaseRequest{
					Key: key, Owner: key, Now: now, CountAttempts: rapid.Bool().Draw(t, "counted"),
				})
			case 3:
				lease := later("lease")
				_ = s.Renew(t.Context(), RenewRequest{
					Key: key, Owner: key, NewOwner: key + "'", Now: now, Lease: lease, Expiry: lease.Add(2 * time.Second),
				})
			case 4:
				now = later("now")
			}
			checkMemoryQueue(t, s)
		}
	})
}

func checkMemoryQueue(t *rapid.T, s *MemoryStore) {
	queued := 0
	for i, second := range s.queue {
		if second.index != i || s.seconds[second.epoch] != second || len(second.items) == 0 {
			t.Fatalf("second %d at place %d of the queue: index is %d, items are %d, found by its time: %t",
				second.epoch, i, second.index, len(second.items), s.seconds[second.epoch] == second)
		}
		if parent := s.queue[max(i-1, 0)/2]; parent.epoch > second.epoch {
			t.Fatalf("second %d is queued before second %d", parent.epoch, second.epoch)
		}
		for j, it := range second.items {
			if it.second != second || it.index != j || s.items[it.key] != it || it.entry.Expiry.Unix() != second.epoch {
				t.Fatalf("item %q at place %d of second %d: index is %d, expiry is %d, held by its key: %t",
					it.key, j, second.epoch, it.index, it.entry.Expiry.Unix(), s.items[it.key] == it)
			}
			queued++
		}
	}
	if queued != len(s.items) || len(s.seconds) != len(s.queue) || len(s.items) > s.maxEntries() {
		t.Fatalf("%d items and %d seconds are queued, %d and %d held, want the same, and at most %d items",
			queued, len(s.queue), len(s.items), len(s.seconds), s.maxEntries())
	}
}
