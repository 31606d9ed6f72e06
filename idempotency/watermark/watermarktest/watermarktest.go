package watermarktest

import (
	"testing"

	"github.com/oncekit/oncekit/idempotency/watermark"
)

// Test checks that a store keeps the rules that watermark.Store documents. It calls newStore once for every subtest. A
// store that needs closing is closed in t.Cleanup.
func Test(t *testing.T, newStore func(t testing.TB) watermark.Store) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, newSuite(t, newStore(t))) })
	}
}

// check is one thing that a store must do.
type check struct {
	name string
	run  func(t reporter, s *suite)
}

// reporter is what checks use of testing.TB, so that they serve in a *rapid.T as well.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

const randomCheck = "random requests"

var checks = []check{
	{"winner/absent", claimAbsent},
	{"winner/64 claims of an absent shard", claimAbsentTogether},
	{"winner/64 claims after the lease", claimLeaseTogether},
	{"winner/64 claims after the expiry", claimExpiryTogether},
	{"winner/claim against advance", claimAgainstAdvance},

	{"owner/advance", advanceOwner},
	{"owner/advance when absent", advanceAbsent},
	{"owner/advance after takeover", advanceTakenOver},
	{"owner/advance after release", advanceReleased},
	{"owner/refused claim changes nothing", claimRefused},

	{"own write/claim", claimTwice},
	{"own write/claim after release", claimTwiceReleased},
	{"own write/advance", advanceTwice},
	{"own write/advance and release", releaseTwice},
	{"own write/release after another claim", releaseTwiceClaimed},

	{"lease/both sides of the limit", leaseLimit},
	{"lease/whole milliseconds", leaseMilliseconds},
	{"lease/longer than any invocation", leaseLong},
	{"lease/advance after the lease", advanceAfterLease},
	{"lease/released", leaseReleased},

	{"expiry/both sides of the limit", expiryLimit},
	{"expiry/whole seconds", expirySeconds},
	{"expiry/of a live claim", expiryOfLiveClaim},
	{"expiry/set by claim", expiryOfClaim},
	{"expiry/advance", expiryOfAdvance},
	{"expiry/starts anew", expiryStartsAnew},

	{"position/order", positionOrder},
	{"position/kept", positionKept},
	{"position/never back", positionNeverBack},
	{"position/none", positionNone},

	{"rewind/back, forward and to nothing", rewindTo},
	{"rewind/absent", rewindAbsent},
	{"rewind/during a claim", rewindDuringClaim},
	{"rewind/claimed again", rewindClaimedAgain},
	{"rewind/expiry", rewindExpiry},

	{"requests/wrong", requestsWrong},
	{"requests/context done", contextDone},
	{"keys/odd", keysOdd},
	{randomCheck, randomRequests},
}
