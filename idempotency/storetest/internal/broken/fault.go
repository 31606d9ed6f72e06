// Package broken has stores and guards that each break one rule, so that the conformance suites can be seen to notice.
package broken

// Fault says what is wrong with a store.
type Fault string

// None is the fault of a store that has none.
const None Fault = ""

// One rule broken in each.
const (
	TwoWinners        Fault = "claim looks first and writes then"
	CompleteNotAtomic Fault = "complete looks first and writes then"
	RenewNotAtomic    Fault = "renew looks first and writes then"

	CompleteAnyOwner       Fault = "complete does not check the owner"
	CompleteAnyStatus      Fault = "complete does not check the status"
	CompleteCreates        Fault = "complete writes what is absent"
	CompleteRefusedChanges Fault = "a refused completion changes the entry"
	CompleteKeepsExpiry    Fault = "complete keeps the expiry of the claim"
	CompleteChecksLease    Fault = "complete refuses what is past its lease"
	CompleteExpired        Fault = "complete accepts what has expired"
	ReleaseAnyOwner        Fault = "release does not check the owner"
	ReleaseAnyStatus       Fault = "release does not check the status"
	ReleaseCompletedSilent Fault = "release of a completion is not refused"
	ReleaseCompletedOthers Fault = "release of another's completion says that it is the caller's"
	ReleaseRefusedChanges  Fault = "a refused release changes the entry"
	RenewAnyOwner          Fault = "renew does not check the owner"
	RenewAnyStatus         Fault = "renew does not check the status"
	RenewCompletedLost     Fault = "renew of a completion says that the claim is lost"
	RenewCreates           Fault = "renew writes what is absent"
	RenewRefusedChanges    Fault = "a refused renewal changes the entry"
	RenewKeepsOwner        Fault = "renew keeps the owner"
	RenewKeepsLease        Fault = "renew keeps the lease"
	RenewExpired           Fault = "renew accepts what has expired"
	RenewIgnoresOldOwner   Fault = "renew accepts any earlier owner"
	ClaimRefusedChanges    Fault = "a refused claim changes the lease"
	ClaimRefusedMarks      Fault = "a refused claim changes the fingerprint"

	OwnClaimUnknown       Fault = "a claim that is sent twice is refused"
	OwnClaimAnyStatus     Fault = "a claim that is sent again after its completion is granted"
	OwnCompletionUnknown  Fault = "a completion that is sent twice is refused"
	OwnRenewalUnknown     Fault = "a renewal that is sent twice is refused"
	ReleaseMissingRefused Fault = "a release that finds nothing is refused"
	ReleaseTwiceRefused   Fault = "a release that finds the key released is refused"

	LeaseEarly        Fault = "takeover a millisecond early"
	LeaseLate         Fault = "takeover a millisecond late"
	LeaseNoSkew       Fault = "takeover without skew"
	LeaseWholeSeconds Fault = "lease kept in seconds"
	LeaseExact        Fault = "lease compared with parts of a millisecond"
	LeaseUnits        Fault = "lease in milliseconds compared with seconds"
	LeaseShort        Fault = "lease cut to a day"
	LeaseUnheeded     Fault = "takeover at the expiry only"

	ExpiryEarly     Fault = "expiry a second early"
	ExpiryLate      Fault = "expiry a second late"
	ExpiryUnheeded  Fault = "an expired completion is held until it is deleted"
	ExpiryExact     Fault = "expiry compared with parts of a second"
	ExpiryEndsClaim Fault = "an expiry ends a live claim"

	NoLeaseIsOver      Fault = "an entry without lease counts as past its lease"
	NoLeaseForEver     Fault = "an entry without lease is never free"
	OwnerlessIsFree    Fault = "an entry without owner counts as free"
	OwnerlessIsMine    Fault = "an entry without owner is everyone's"
	ZeroLeaseIsNone    Fault = "a lease of zero counts as none"
	TookOverNever      Fault = "a takeover is not told"
	TookOverExpired    Fault = "a claim after an expiry is told as a takeover"
	TookOverReleased   Fault = "a claim after a release is told as a takeover"
	TakeoverKeepsData  Fault = "a takeover leaves the data"
	TakeoverKeepsPrint Fault = "a takeover leaves the fingerprint"

	ClaimDropsPrint    Fault = "claim does not keep the fingerprint"
	CompleteDropsPrint Fault = "complete drops the fingerprint"
	RenewDropsPrint    Fault = "renew drops the fingerprint"

	DataDropped      Fault = "a large result is dropped silently"
	DataNotCompleted Fault = "a large result is said not to be stored, and the key is not completed"
	DataNilIsNull    Fault = "no result becomes null"
	DataNullIsNil    Fault = "null becomes no result"
	DataCompacted    Fault = "a result is written anew as JSON"
	DataAliasedIn    Fault = "the caller's bytes are kept"
	DataAliasedOut   Fault = "the store's bytes are handed out"
	RefusedNoData    Fault = "a refused claim has no result"
	RefusedNoEntry   Fault = "a refused claim has no entry"

	FullEvictsClaim      Fault = "a full store forgets a live claim"
	FullEvictsCompletion Fault = "a full store forgets a completion"
	FullEvictsEarly      Fault = "a full store forgets a completion a second early"
	FullRefusesKnown     Fault = "a full store refuses the keys that it has"
	FullForEver          Fault = "a full store keeps what has expired"
	FullUnheeded         Fault = "a store takes more than it has room for"

	AttemptsAlways     Fault = "attempts are counted unasked"
	AttemptsNever      Fault = "attempts are not counted"
	AttemptsRefused    Fault = "a refused claim counts"
	AttemptsTwice      Fault = "a claim that is sent twice counts twice"
	AttemptsNotBack    Fault = "an attempt is not taken back"
	AttemptsBackTwice  Fault = "a release that is sent twice takes back two attempts"
	AttemptsTakeover   Fault = "attempts are lost on takeover"
	AttemptsRelease    Fault = "attempts are lost on release"
	AttemptsCompletion Fault = "attempts survive a completion"
	AttemptsRenew      Fault = "attempts are lost on renewal"
	ReleasedKeepsOwner Fault = "a released entry keeps its owner"
	ReleasedKeepsLease Fault = "a released entry keeps its lease"

	KeysCut     Fault = "keys are cut"
	KeysFolded  Fault = "keys are folded to lower case"
	KeysTrimmed Fault = "keys are trimmed"
	KeysCString Fault = "keys end at a zero byte"

	ContextLost Fault = "a context that is done is told as a lost claim"
)
