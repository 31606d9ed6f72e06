package idempotency_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// A key that is stored as a hash, since it is personal or very long, is in no error and in no log line. The hash is.
func TestHashedKeysAreNotShown(t *testing.T) {
	number := returns(1.0, nil)
	for _, test := range []struct {
		name  string
		store *faultStore
		work  func(context.Context) (float64, error) // of the first call; nil: the key is held by another
		again bool                                   // it is the second call that says something
	}{
		{"undecided", &faultStore{onClaim: refuse(errThrottled)}, number, false},
		{"full", &faultStore{onClaim: refuse(idempotency.ErrStoreFull)}, number, false},
		{"too late", &faultStore{onClaim: delayReply(time.Hour)}, number, false},
		{"too late and not released", &faultStore{onClaim: delayReply(time.Hour), onRelease: refuse(errThrottled)},
			number, false},
		{"held", &faultStore{}, nil, true},
		{"claim lost", &faultStore{onComplete: refuse(idempotency.ErrClaimLost)}, number, false},
		{"unrecorded", &faultStore{onComplete: refuse(errThrottled)}, number, false},
		{"not released", &faultStore{onRelease: refuse(errThrottled)}, returns(0.0, errThrottled), false},
		{"no JSON", &faultStore{}, returns(math.NaN(), nil), false},
		{"no result", &faultStore{}, returns(math.NaN(), nil), true},
	} {
		for _, key := range []string{"jane@example.com", strings.Repeat("k", 2000)} {
			t.Run(test.name+", "+key[:4], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					test.store.MemoryStore = idempotency.MemoryStore{}
					g := newGuard(t, test.store, logTo(&log), func(o *idempotency.Options) { o.HashKeys = len(key) < 100 })
					work := test.work
					if work == nil {
						_, err := g.Claim(t.Context(), idempotency.Request{Key: key})
						wantErr(t, err)
						work = number
					}
					_, err := idempotency.Do(t.Context(), g, key, work)
					if test.again {
						_, err = idempotency.Do(t.Context(), g, key, work)
					}
					wantHashed(t, key, errorText(err)+log.String())
				})
			})
		}
	}
}

// The same for errors that no fault of a store is needed for.
func TestHashedKeysAreNotShownByTheGuard(t *testing.T) {
	const key = "jane@example.com"
	store := idempotency.NewMemoryStore()
	g := newGuard(t, store, func(o *idempotency.Options) { o.HashKeys = true })
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := idempotency.Do(cancelled, g, key, forbidden[int](t))
	wantHashed(t, key, errorText(err))
	_, err = idempotency.Do(idempotency.WithInvocationDeadline(t.Context(), time.Now()), g, key, forbidden[int](t))
	wantHashed(t, key, errorText(err))

	store.Plant(hashed(key), idempotency.Entry{
		Status: idempotency.Completed, Fingerprint: "a", Data: []byte("{}"), Expiry: time.Now().Add(time.Hour)})
	_, err = idempotency.Do(t.Context(), g, key, forbidden[int](t)) // {} is no int
	wantHashed(t, key, errorText(err))
	other := func(o *idempotency.CallOptions) { o.Fingerprint = "b" }
	_, err = idempotency.Do(t.Context(), g, key, forbidden[int](t), other)
	wantHashed(t, key, errorText(err))

	broken := newGuard(t, brokenStore{}, func(o *idempotency.Options) { o.HashKeys = true })
	_, err = idempotency.Do(t.Context(), broken, key, forbidden[int](t))
	wantHashed(t, key, errorText(err))
}

func wantHashed(t *testing.T, key, text string) {
	t.Helper()
	name := strings.TrimPrefix(hashed(key), "orders#")
	if strings.Contains(text, key) || !strings.Contains(text, name) {
		t.Errorf("error and log are %q, want them to show %s and not the key", text, name)
	}
}
