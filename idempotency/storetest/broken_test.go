package storetest

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest/internal/broken"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The model fails on purpose here. Nobody wants to reproduce that, or to have it made small. Its requests are the same
	// each time, so that what it notices does not change from run to run.
	for name, value := range map[string]string{
		"rapid.nofailfile": "true", "rapid.shrinktime": "0s", "rapid.seed": "1", "rapid.checks": "200",
	} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func TestMemoryStore(t *testing.T) {
	Test(t, func(testing.TB) idempotency.Store { return idempotency.NewMemoryStore() })
}

func TestStoreWithoutFault(t *testing.T) {
	Test(t, func(testing.TB) idempotency.Store { return broken.NewStore(broken.None) })
}

// storeFaults says for each fault which check is there to notice it, and whether the model notices it too.
var storeFaults = []struct {
	fault broken.Fault
	check string
	model bool
}{
	{broken.TwoWinners, "1-winner/64 claims of an absent key", false},
	{broken.CompleteNotAtomic, "1-winner/claim against complete", false},
	{broken.RenewNotAtomic, "1-winner/claim against renew", false},
	{broken.CompleteAnyOwner, "2-owner/complete", true},
	{broken.CompleteAnyStatus, "3-own-write/complete", true},
	{broken.CompleteCreates, "2-owner/complete when lost", true},
	{broken.CompleteRefusedChanges, "2-owner/complete", true},
	{broken.CompleteKeepsExpiry, "5-expiry/both sides of the limit", true},
	{broken.CompleteChecksLease, "4-lease/complete after the lease", true},
	{broken.CompleteExpired, "5-expiry/complete", true},
	{broken.ReleaseAnyOwner, "2-owner/release", true},
	{broken.ReleaseAnyStatus, "2-owner/release when completed", true},
	{broken.ReleaseCompletedSilent, "2-owner/release when completed", true},
	{broken.ReleaseCompletedOthers, "2-owner/release when completed", true},
	{broken.ReleaseRefusedChanges, "2-owner/release", true},
	{broken.RenewAnyOwner, "2-owner/renew", true},
	{broken.RenewAnyStatus, "2-owner/renew when completed", true},
	{broken.RenewCompletedLost, "2-owner/renew when completed", true},
	{broken.RenewCreates, "2-owner/renew when lost", true},
	{broken.RenewRefusedChanges, "2-owner/renew", true},
	{broken.RenewKeepsOwner, "2-owner/renew is compare-and-set", true},
	{broken.RenewKeepsLease, "4-lease/after renewal", true},
	{broken.RenewExpired, "5-expiry/renew", true},
	{broken.RenewIgnoresOldOwner, "2-owner/renew is compare-and-set", true},
	{broken.ClaimRefusedChanges, "2-owner/refused claim changes nothing", true},
	{broken.ClaimRefusedMarks, "2-owner/refused claim changes nothing", true},
	{broken.OwnClaimUnknown, "3-own-write/claim", true},
	{broken.OwnClaimAnyStatus, "3-own-write/claim after completion", true},
	{broken.OwnCompletionUnknown, "3-own-write/complete", true},
	{broken.OwnRenewalUnknown, "3-own-write/renew", true},
	{broken.ReleaseMissingRefused, "3-own-write/release", true},
	{broken.ReleaseTwiceRefused, "3-own-write/release", true},
	{broken.LeaseEarly, "4-lease/both sides of the limit", true},
	{broken.LeaseLate, "4-lease/both sides of the limit", false},
	{broken.LeaseNoSkew, "4-lease/both sides of the limit", true},
	{broken.LeaseWholeSeconds, "4-lease/both sides of the limit", true},
	{broken.LeaseExact, "4-lease/whole milliseconds", false},
	{broken.LeaseUnits, "4-lease/seconds are not milliseconds", true},
	{broken.LeaseShort, "4-lease/longer than any invocation", false},
	{broken.LeaseUnheeded, "4-lease/seconds are not milliseconds", true},
	{broken.ExpiryEarly, "5-expiry/both sides of the limit", true},
	{broken.ExpiryLate, "5-expiry/both sides of the limit", true},
	{broken.ExpiryUnheeded, "5-expiry/expired but not deleted", true},
	{broken.ExpiryExact, "5-expiry/whole seconds", true},
	{broken.ExpiryEndsClaim, "5-expiry/of a live claim", false},
	{broken.NoLeaseIsOver, "planted/without lease", false},
	{broken.NoLeaseForEver, "planted/without lease", false},
	{broken.OwnerlessIsFree, "planted/without owner", false},
	{broken.OwnerlessIsMine, "planted/without owner", true},
	{broken.ZeroLeaseIsNone, "planted/lease of zero", true},
	{broken.TookOverNever, "4-lease/both sides of the limit", true},
	{broken.TookOverExpired, "5-expiry/both sides of the limit", true},
	{broken.TookOverReleased, "attempts/kept without owner", true},
	{broken.TakeoverKeepsData, "5-expiry/takeover starts anew", true},
	{broken.TakeoverKeepsPrint, "5-expiry/takeover starts anew", true},
	{broken.ClaimDropsPrint, "11-fingerprint/kept", true},
	{broken.CompleteDropsPrint, "11-fingerprint/kept", true},
	{broken.RenewDropsPrint, "11-fingerprint/kept", true},
	{broken.DataDropped, "13-data/large", false},
	{broken.DataNotCompleted, "13-data/large", false},
	{broken.DataNilIsNull, "13-data/none and null", true},
	{broken.DataNullIsNil, "13-data/none and null", false},
	{broken.DataCompacted, "13-data/documents", false},
	{broken.DataAliasedIn, "13-data/copied", false},
	{broken.DataAliasedOut, "13-data/copied", false},
	{broken.RefusedNoData, "15-refused/completed", true},
	{broken.RefusedNoEntry, "1-winner/absent key", true},
	{broken.FullEvictsClaim, "18-full/refuses new keys", false},
	{broken.FullEvictsCompletion, "18-full/refuses new keys", false},
	{broken.FullEvictsEarly, "18-full/has room again", false},
	{broken.FullRefusesKnown, "18-full/serves the keys it has", false},
	{broken.FullForEver, "18-full/has room again", false},
	{broken.FullUnheeded, "18-full/refuses new keys", false},
	{broken.AttemptsAlways, "attempts/not counted", true},
	{broken.AttemptsNever, "attempts/counted", true},
	{broken.AttemptsRefused, "2-owner/refused claim changes nothing", true},
	{broken.AttemptsTwice, "3-own-write/claim", true},
	{broken.AttemptsNotBack, "attempts/taken back", true},
	{broken.AttemptsBackTwice, "attempts/taken back", true},
	{broken.AttemptsTakeover, "attempts/counted", true},
	{broken.AttemptsRelease, "attempts/kept without owner", true},
	{broken.AttemptsCompletion, "attempts/reset by completion", true},
	{broken.AttemptsRenew, "2-owner/renew", true},
	{broken.ReleasedKeepsOwner, "attempts/kept without owner", true},
	{broken.ReleasedKeepsLease, "attempts/counted", true},
	{broken.KeysCut, "keys/odd", false},
	{broken.KeysFolded, "keys/odd", false},
	{broken.KeysTrimmed, "keys/odd", false},
	{broken.KeysCString, "keys/odd", false},
	{broken.ContextLost, "context/done", false},
}

// TestBrokenStores proves that each check of the suite notices what it is there for, and that none is idle.
func TestBrokenStores(t *testing.T) {
	noticed := make(map[string]bool)
	for _, test := range storeFaults {
		t.Run(string(test.fault), func(t *testing.T) {
			failed := make(map[string]bool)
			for _, c := range storeChecks {
				if c.name == modelCheck && !test.model {
					continue // it takes longer than all others
				}
				r := record(t, func(t testing.TB) { c.run(t, newSuite(t, broken.NewStore(test.fault))) })
				if r.Failed() {
					failed[c.name], noticed[c.name] = true, true
				}
			}
			if !failed[test.check] {
				t.Errorf("%q passes, and is there to notice this", test.check)
			}
			if test.model && !failed[modelCheck] {
				t.Errorf("the model does not notice this")
			}
		})
	}
	for _, c := range storeChecks {
		if !noticed[c.name] {
			t.Errorf("no broken store fails %q", c.name)
		}
	}
}
