package watermarktest

// fault says which rule a store breaks.
type fault string

// noFault is the fault of a store that has none.
const noFault fault = ""

// One rule broken in each.
const (
	twoWinners       fault = "claim looks first and writes then"
	advanceNotAtomic fault = "advance looks first and writes then"

	advanceAnyOwner    fault = "advance does not check the owner"
	advanceCreates     fault = "advance writes what is absent"
	advanceAnyRelease  fault = "advance goes on after the release"
	advanceChecksLease fault = "advance refuses what is past its lease"
	advanceRefusedKeep fault = "a refused advance changes the expiry"
	claimRefusedKeep   fault = "a refused claim changes the lease"
	noneChecksNothing  fault = "an advance to nothing does not check the owner"

	ownClaimUnknown   fault = "a claim that is sent twice is refused"
	ownClaimReleased  fault = "a claim that is sent again after its release is granted"
	ownClaimWrites    fault = "a claim that is sent twice starts anew"
	ownReleaseUnknown fault = "a release that is sent twice is refused"
	ownReleaseWrites  fault = "a release that is sent twice is done twice"
	otherReleaseDone  fault = "a release that finds another owner is done"

	leaseEarly    fault = "takeover a millisecond early"
	leaseLate     fault = "takeover a millisecond late"
	leaseNoSkew   fault = "takeover without skew"
	leaseExact    fault = "lease compared with parts of a millisecond"
	leaseSeconds  fault = "lease kept in seconds"
	leaseShort    fault = "lease cut to a day"
	releaseKept   fault = "a release leaves the lease"
	releaseSkewed fault = "a release ends the lease now, so that the skew has to pass"

	expiryEarly      fault = "expiry a second early"
	expiryLate       fault = "expiry a second late"
	expiryExact      fault = "expiry compared with parts of a second"
	expiryNever      fault = "an expired position counts until it is deleted"
	expiryEndsClaim  fault = "an expiry ends a live claim"
	claimKeepsExpiry fault = "claim keeps the expiry"
	moveKeepsExpiry  fault = "advance keeps the expiry"
	noneKeepsExpiry  fault = "an advance to nothing keeps the expiry"
	advanceExpired   fault = "advance goes on after the expiry"
	positionHidden   fault = "an expired position is hidden and not removed"

	orderText     fault = "sequence numbers compared as text"
	orderZeros    fault = "leading zeros count"
	orderFloat    fault = "sequence numbers compared as floats"
	orderNoSub    fault = "sub-sequence numbers do not count"
	orderSubText  fault = "sub-sequence numbers compared as text"
	positionBack  fault = "advance moves the position back"
	backRefused   fault = "an advance to an earlier position is refused"
	backNoRelease fault = "an advance to an earlier position does not release"
	backChanges   fault = "an advance to an earlier position changes the expiry"
	sameRefused   fault = "an advance to the same position is refused"
	claimForgets  fault = "a takeover forgets the position"
	zeroIsNone    fault = "sequence number 0 is no position"
	noneForgets   fault = "an advance to nothing forgets the position"

	rewindChecks       fault = "rewind refuses a shard that is held"
	rewindForward      fault = "rewind does not move forward"
	rewindNoneIgnored  fault = "rewind to nothing does nothing"
	rewindNeedsEntry   fault = "rewind does not write what is absent"
	rewindKeepsOwner   fault = "rewind leaves the owner"
	rewindKeepsRelease fault = "rewind leaves the owner and ends the lease"
	rewindKeepsExpiry  fault = "rewind keeps the expiry"

	freeWrong      fault = "a refusal says that the shard is free at the end of the lease"
	wrongTaken     fault = "wrong requests are taken"
	wrongIsLost    fault = "a wrong request is told as a lost claim"
	contextLost    fault = "a context that is done is told as a lost claim"
	keysFolded     fault = "keys are folded to lower case"
	keysCut        fault = "keys are cut"
	keysTrimmed    fault = "keys are trimmed"
	sharedPosition fault = "all shards have one position"
)
