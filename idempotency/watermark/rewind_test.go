package watermark_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

// TestRewind takes a shard from a consumer that is running, and sees where the next one begins.
func TestRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := watermark.NewMemoryStore()
		key := watermark.Key("billing", streamARN, shardID)
		claim := func(owner string) watermark.Position {
			t.Helper()
			now := time.Now()
			position, err := store.Claim(t.Context(), watermark.ClaimRequest{
				Key: key, Owner: owner, Now: now, Lease: now.Add(time.Minute), Expiry: now.Add(25 * time.Hour),
			})
			if err != nil {
				t.Fatal(err)
			}
			return position
		}
		advance := func(owner string) error {
			now := time.Now()
			return store.Advance(t.Context(), watermark.AdvanceRequest{
				Key: key, Owner: owner, Now: now, To: whole("100"), Expiry: now.Add(25 * time.Hour),
			})
		}
		claim("first")
		if err := advance("first"); err != nil {
			t.Fatal(err)
		}
		// The ARN of the records of enhanced fan-out names the same stream.
		err := watermark.Rewind(t.Context(), store, "billing", streamARN+"/consumer/fast:1700000000", shardID, whole("41"))
		if err != nil {
			t.Fatal(err)
		}
		if err := advance("first"); !errors.Is(err, idempotency.ErrClaimLost) {
			t.Errorf("advance after the rewind: error is %v, want %v", err, idempotency.ErrClaimLost)
		}
		time.Sleep(366 * 24 * time.Hour)
		if got := claim("second"); got != whole("41") {
			t.Errorf("position after the rewind and 366 days is %q, want 41", got)
		}
		if err := watermark.Rewind(t.Context(), store, "billing", streamARN, shardID, whole("41")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(366*24*time.Hour + time.Second)
		if got := claim("third"); !got.IsZero() {
			t.Errorf("position after the rewind and more than 366 days is %q, want none", got)
		}
		if err := watermark.Rewind(t.Context(), store, "billing", streamARN, "", whole("41")); err == nil {
			t.Error("a rewind of no shard is no error")
		}
	})
}
