package storetest

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/oncekit/oncekit/idempotency"
)

// Do is a call of a guard: idempotency.Do with a result of bytes, or something else that does work under a key.
type Do func(ctx context.Context, key, fingerprint string, work func(context.Context) ([]byte, error)) (
	data []byte, replayed bool, err error)

// NewGuard makes the guard under test.
type NewGuard func(t testing.TB, namespace string, store idempotency.Store, options idempotency.Options) Do

// TestGuard checks what a guard does with a store: which requests it sends and when, and what it makes of replies that are
// lost, late or refusals. It is for whoever builds something of their own on idempotency.Store, and for this project's
// own guard. Each subtest runs in a synctest bubble, with a store in memory that fails on demand.
//
// The subtests are named by these rules:
//
//	1-winner        Of callers that come together one does the work.
//	2-owner         Every claim has a token of its own that nobody can guess, and settles with it.
//	3-own-write     A reply that is lost changes nothing in the end.
//	4-lease         A lease lasts until the invocation's deadline, by default a minute, and the work's context less.
//	5-expiry        A completion is replayed until it expires. An expiry is later than a lease.
//	6-key           Keys are stored as they are, or as a hash if they are long or personal.
//	7-detached      A completion and a release do not end with the work's context, and come after the work.
//	8-closed        Work whose claim is not decided does not begin, nor does work that has no time left.
//	9-unrecorded    Work that is done is not released, whatever becomes of its completion.
//	10-failed       Work that fails is released, and its error comes first.
//	11-fingerprint  A key that was used with another payload is an error. A fingerprint that is long or no text is stored
//	                as a hash.
//	12-missing      A missing key is an error, or runs unprotected by option. It is never a key.
//	13-result       A result replays as it was, or the caller is told that it cannot.
//	14-namespace    The namespace is what the caller says.
//	15-requests     A first run takes two requests, a replay and a conflict one, a failure two.
//	18-full         A store that is full is an error.
func TestGuard(t *testing.T, newGuard NewGuard) {
	for _, c := range guardChecks {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(t, newGuardSuite(newGuard)) })
		})
	}
}

type guardCheck struct {
	name string
	run  func(t testing.TB, s *guardSuite)
}

var guardChecks = []guardCheck{
	{"1-winner/64 callers", callersTogether},
	{"2-owner/fresh and unguessable", ownersFresh},
	{"2-owner/one from claim to end", ownerKept},
	{"3-own-write/claim", claimReplyLost},
	{"3-own-write/completion", completionReplyLost},
	{"3-own-write/release", releaseReplyLost},

	{"4-lease/from the deadline", leaseFromDeadline},
	{"4-lease/without deadline", leaseWithoutDeadline},
	{"4-lease/by option", leaseByOption},
	{"4-lease/context of the work", leaseContext},
	{"4-lease/nested", leaseNested},
	{"4-lease/takeover", leaseTakeover},
	{"5-expiry/later than the lease", expiryAfterLease},
	{"5-expiry/of a completion", expiryOfCompletion},
	{"6-key/verbatim", keyVerbatim},
	{"6-key/long", keyLong},
	{"6-key/hashed", keyHashed},

	{"7-detached/completion", detachedCompletion},
	{"7-detached/release", detachedRelease},
	{"7-detached/late", detachedLate},
	{"7-detached/bounded", detachedBounded},
	{"7-detached/after the work", detachedAfterWork},

	{"8-closed/undecided", closedUndecided},
	{"8-closed/undecided and not released", closedNotReleased},
	{"8-closed/reply after the lease", closedReplyAfterLease},
	{"8-closed/reply after the deadline", closedReplyAfterDeadline},
	{"8-closed/no time left", closedNoTime},
	{"9-unrecorded/retried", unrecordedRetried},
	{"9-unrecorded/never stored", unrecordedNever},
	{"9-unrecorded/fails by option", unrecordedFails},
	{"9-unrecorded/lost", unrecordedLost},
	{"10-failed/released", failedReleased},
	{"10-failed/not released", failedNotReleased},
	{"10-failed/lost", failedLost},
	{"10-failed/panic", failedPanic},
	{"10-failed/goexit", failedGoexit},

	{"11-fingerprint/completed", fingerprintCompleted},
	{"11-fingerprint/in progress", fingerprintInProgress},
	{"11-fingerprint/long or no text", fingerprintOdd},
	{"12-missing/fails", missingFails},
	{"12-missing/unprotected", missingUnprotected},
	{"13-result/as it was", resultAsItWas},
	{"13-result/not stored", resultNotStored},
	{"14-namespace/argument", namespaceArgument},
	{"15-requests/budget", requestBudget},
	{"18-full/error", fullError},
}
