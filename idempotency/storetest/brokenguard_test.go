package storetest

import (
	"testing"
	"testing/synctest"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest/internal/broken"
)

func brokenGuard(fault broken.Fault) NewGuard {
	return func(_ testing.TB, namespace string, store idempotency.Store, o idempotency.Options) Do {
		return broken.NewGuard(fault, namespace, store, o).Do
	}
}

func TestGuardWithoutFault(t *testing.T) { TestGuard(t, brokenGuard(broken.None)) }

// guardFaults says for each fault which check is there to notice it.
var guardFaults = []struct {
	fault broken.Fault
	check string
}{
	{broken.HeldRuns, "1-winner/64 callers"},
	{broken.HeldReplays, "11-fingerprint/in progress"},
	{broken.OwnerPerGuard, "2-owner/fresh and unguessable"},
	{broken.OwnerCounted, "2-owner/fresh and unguessable"},
	{broken.OwnerPerCall, "2-owner/one from claim to end"},
	{broken.KeyComputedNew, "2-owner/one from claim to end"},
	{broken.LeaseFixed, "4-lease/from the deadline"},
	{broken.LeaseNoDefault, "4-lease/without deadline"},
	{broken.LeaseOptionUnheeded, "4-lease/by option"},
	{broken.LeaseOptionCut, "4-lease/by option"},
	{broken.LeaseOfContext, "4-lease/nested"},
	{broken.WorkUnlimited, "4-lease/context of the work"},
	{broken.WorkToTheLease, "4-lease/context of the work"},
	{broken.SkewUnheeded, "4-lease/takeover"},
	{broken.ExpiryBeforeLease, "5-expiry/later than the lease"},
	{broken.ExpiryOptionIgnored, "5-expiry/of a completion"},
	{broken.LongKeysCut, "6-key/long"},
	{broken.LongKeysVerbatim, "6-key/long"},
	{broken.AllKeysHashed, "6-key/verbatim"},
	{broken.HashIgnored, "6-key/hashed"},
	{broken.HashForged, "6-key/long"},
	{broken.CompleteAttached, "7-detached/completion"},
	{broken.ReleaseAttached, "7-detached/release"},
	{broken.SettleAtDeadline, "7-detached/late"},
	{broken.SettleUnbounded, "7-detached/bounded"},
	{broken.ReleaseAtDeadline, "7-detached/after the work"},
	{broken.UndecidedRuns, "8-closed/undecided"},
	{broken.UndecidedKept, "3-own-write/claim"},
	{broken.UndecidedSilent, "8-closed/undecided and not released"},
	{broken.LateReplyRuns, "8-closed/reply after the lease"},
	{broken.LateReplyKept, "8-closed/reply after the lease"},
	{broken.EndedRuns, "8-closed/no time left"},
	{broken.CompletionOnce, "9-unrecorded/retried"},
	{broken.CompletionFinal, "3-own-write/completion"},
	{broken.UnrecordedReleased, "9-unrecorded/never stored"},
	{broken.UnrecordedIsError, "9-unrecorded/never stored"},
	{broken.UnrecordedIsFine, "9-unrecorded/fails by option"},
	{broken.LostIsFine, "9-unrecorded/lost"},
	{broken.LostCompleted, "9-unrecorded/lost"},
	{broken.FailureKept, "10-failed/released"},
	{broken.FailureCompleted, "10-failed/released"},
	{broken.FailureReplaced, "10-failed/not released"},
	{broken.FailureSecond, "10-failed/not released"},
	{broken.ReleaseErrorDropped, "10-failed/not released"},
	{broken.LostReleased, "10-failed/lost"},
	{broken.PanicKept, "10-failed/panic"},
	{broken.PanicIsFine, "10-failed/panic"},
	{broken.GoexitKept, "10-failed/goexit"},
	{broken.PrintUnheeded, "11-fingerprint/completed"},
	{broken.PrintUnheededRunning, "11-fingerprint/in progress"},
	{broken.PrintMismatchRuns, "11-fingerprint/completed"},
	{broken.PrintVerbatim, "11-fingerprint/long or no text"},
	{broken.PrintCut, "11-fingerprint/long or no text"},
	{broken.PrintMadeText, "11-fingerprint/long or no text"},
	{broken.MissingShared, "12-missing/fails"},
	{broken.MissingRuns, "12-missing/fails"},
	{broken.MissingOptionUnheeded, "12-missing/unprotected"},
	{broken.ResultEmptyIsNil, "13-result/as it was"},
	{broken.ResultNilIsEmpty, "13-result/as it was"},
	{broken.ResultNotStoredFails, "13-result/not stored"},
	{broken.ResultMissingIsNil, "13-result/not stored"},
	{broken.ResultMissingRuns, "13-result/not stored"},
	{broken.NamespaceUnheeded, "14-namespace/argument"},
	{broken.NamespaceDerived, "14-namespace/argument"},
	{broken.RequestsRenew, "15-requests/budget"},
	{broken.RequestsClaim, "15-requests/budget"},
	{broken.FullRuns, "18-full/error"},
}

// TestBrokenGuards proves that each check of the suite notices what it is there for, and that none is idle.
func TestBrokenGuards(t *testing.T) {
	noticed := make(map[string]bool)
	for _, test := range guardFaults {
		t.Run(string(test.fault), func(t *testing.T) {
			failed := make(map[string]bool)
			for _, c := range guardChecks {
				synctest.Test(t, func(t *testing.T) {
					r := record(t, func(t testing.TB) { c.run(t, newGuardSuite(brokenGuard(test.fault))) })
					if r.Failed() {
						failed[c.name], noticed[c.name] = true, true
					}
				})
			}
			if !failed[test.check] {
				t.Errorf("%q passes, and is there to notice this", test.check)
			}
		})
	}
	for _, c := range guardChecks {
		if !noticed[c.name] {
			t.Errorf("no broken guard fails %q", c.name)
		}
	}
}
