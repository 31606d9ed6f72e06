package storetest

import (
	"testing"

	"github.com/oncekit/oncekit/idempotency"
)

// Planter is implemented by a store under test that can hold entries of other tools: rows in progress without an owner or
// without a lease, completions without a fingerprint. A store that shares its table with nobody has no need of it.
type Planter interface {
	// Plant writes the entry as it is, over whatever is there. Fields that are zero are absent from the row.
	Plant(t testing.TB, key string, e idempotency.Entry)
}

// Limiter is implemented by a store under test that can be full.
type Limiter interface {
	// Limited returns an empty store of the same kind with room for maxEntries keys.
	Limited(t testing.TB, maxEntries int) idempotency.Store
}

// Test checks that a store keeps the rules that idempotency.Store documents, and idempotency.BulkStore and idempotency.Marker
// where it is one. It calls newStore once for every subtest, and once before them to see what the store is. A store that needs closing is
// closed in t.Cleanup.
func Test(t *testing.T, newStore func(t testing.TB) idempotency.Store) {
	t.Helper()
	store := newStore(t)
	_, isBulk := store.(idempotency.BulkStore)
	for _, c := range storeChecks {
		if c.needs != nil && !c.needs(store) {
			continue
		}
		t.Run(c.name, func(t *testing.T) { c.run(t, newSuite(t, newStore(t))) })
		for _, v := range variants {
			if v.bulk && !isBulk || !v.model && c.name == modelCheck {
				continue
			}
			t.Run(v.name+"/"+c.name, func(t *testing.T) { c.run(t, newSuite(t, v.store(t, newStore(t)))) })
		}
	}
	for _, c := range bulkChecks {
		if isBulk {
			t.Run("bulk/"+c.name, func(t *testing.T) {
				s := newSuite(t, newStore(t))
				c.run(t, s, s.store.(idempotency.BulkStore))
			})
		}
	}
	for _, c := range markChecks {
		if isMarker(store) {
			t.Run("mark/"+c.name, func(t *testing.T) {
				s := newSuite(t, newStore(t))
				c.run(t, s, s.store.(idempotency.Marker))
			})
		}
	}
}

// check is one thing that a store must do. It reports to a testing.TB and not to a *testing.T, so that a test of the suite
// can record what it says about a broken store.
type check struct {
	name  string
	needs func(idempotency.Store) bool // what must be true of a store for the check to make sense, nil: nothing
	run   func(t testing.TB, s *suite)
}

const modelCheck = "model/random requests"

var storeChecks = []check{
	{"1-winner/absent key", nil, claimAbsent},
	{"1-winner/64 claims of an absent key", nil, claimAbsentTogether},
	{"1-winner/64 claims after the lease", nil, claimLeaseTogether},
	{"1-winner/64 claims after the expiry", nil, claimExpiryTogether},
	{"1-winner/claim against complete", nil, claimAgainstComplete},
	{"1-winner/claim against renew", nil, claimAgainstRenew},

	{"2-owner/complete", nil, completeOwner},
	{"2-owner/complete when lost", nil, completeLost},
	{"2-owner/release", nil, releaseOwner},
	{"2-owner/release when completed", nil, releaseCompleted},
	{"2-owner/renew", nil, renewOwner},
	{"2-owner/renew when lost", nil, renewLost},
	{"2-owner/renew when completed", nil, renewCompleted},
	{"2-owner/renew is compare-and-set", nil, renewDelayed},
	{"2-owner/refused claim changes nothing", nil, claimRefusedChangesNothing},

	{"3-own-write/claim", nil, claimTwice},
	{"3-own-write/claim after completion", nil, claimTwiceAfterCompletion},
	{"3-own-write/complete", nil, completeTwice},
	{"3-own-write/release", nil, releaseTwice},
	{"3-own-write/release after another claim", nil, releaseTwiceAfterClaim},
	{"3-own-write/renew", nil, renewTwice},

	{"4-lease/both sides of the limit", nil, leaseLimit},
	{"4-lease/whole milliseconds", nil, leaseMilliseconds},
	{"4-lease/seconds are not milliseconds", nil, leaseUnits},
	{"4-lease/longer than any invocation", nil, leaseLong},
	{"4-lease/after renewal", nil, leaseRenewed},
	{"4-lease/complete after the lease", nil, completeAfterLease},

	{"5-expiry/both sides of the limit", nil, expiryLimit},
	{"5-expiry/whole seconds", nil, expirySeconds},
	{"5-expiry/expired but not deleted", nil, expiryNotDeleted},
	{"5-expiry/of a live claim", nil, expiryOfLiveClaim},
	{"5-expiry/complete", nil, expiryComplete},
	{"5-expiry/renew", nil, expiryRenew},
	{"5-expiry/takeover starts anew", nil, takeoverStartsAnew},

	{"11-fingerprint/kept", nil, fingerprintKept},
	{"13-data/documents", nil, dataDocuments},
	{"13-data/none and null", nil, dataNone},
	{"13-data/large", nil, dataLarge},
	{"13-data/copied", nil, dataCopied},
	{"15-refused/completed", nil, refusedByCompletion},

	{"18-full/refuses new keys", isLimiter, fullRefuses},
	{"18-full/serves the keys it has", isLimiter, fullServes},
	{"18-full/has room again", isLimiter, fullHasRoomAgain},

	{"attempts/not counted", nil, attemptsNotCounted},
	{"attempts/counted", nil, attemptsCounted},
	{"attempts/taken back", nil, attemptsTakenBack},
	{"attempts/kept without owner", nil, attemptsKeptWithoutOwner},
	{"attempts/reset by completion", nil, attemptsReset},

	{"planted/without owner", isPlanter, plantedWithoutOwner},
	{"planted/without lease", isPlanter, plantedWithoutLease},
	{"planted/lease of zero", isPlanter, plantedLeaseZero},
	{"planted/expiry before lease", isPlanter, plantedExpiryBeforeLease},
	{"planted/with remains", isPlanter, plantedRemains},
	{"planted/completed without fingerprint", isPlanter, plantedCompleted},

	{"keys/odd", nil, keysOdd},
	{"context/done", nil, contextDone},
	{modelCheck, nil, modelRandom},
}

func isPlanter(s idempotency.Store) bool { _, ok := s.(Planter); return ok }
func isLimiter(s idempotency.Store) bool { _, ok := s.(Limiter); return ok }
func isMarker(s idempotency.Store) bool  { _, ok := s.(idempotency.Marker); return ok }
