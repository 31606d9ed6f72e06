package protocol

// Row is what the store holds for a key. Its zero value is no row.
type Row struct {
	Status status
	Owner  int8 // token, 0: none
	Lease  int8 // 0: none
	Expiry int8
}

type status uint8

const (
	absent status = iota
	inprogress
	completed
)

type op uint8

const (
	noOp op = iota
	opClaim
	opLook // one winner off: reads the row
	opPut  // one winner off: writes it, unconditionally
	opComplete
	opRelease
	opRenew
)

// request is one request to the store, as it is on its way.
type request struct {
	Op       op
	Attempt  int8
	Owner    int8
	NewOwner int8
	Now      int8 // the caller's clock
	Lease    int8
	Expiry   int8
}

type answer uint8

const (
	noAnswer      answer = iota
	answerOK             // claimed, completed, released, renewed
	answerFree           // to a look: the key is free
	answerHeld           // a claim is refused: another's claim
	answerDone           // a claim is refused: a completion
	answerLost           // ErrClaimLost
	answerAlready        // ErrAlreadyCompleted
	answerError          // the store says that it has done nothing: throttled, or cancelled by a conflict
)

// expired reports whether the row counts as absent at now.
func (r Row) expired(now int8) bool { return r.Expiry < now }

// free reports whether a claim at now may have the row's key.
func (c *Config) free(r Row, now int8) bool {
	skew := c.Skew
	if c.Off.has(SkewInTakeover) {
		skew = 0
	}
	switch {
	case r.Status == absent:
		return true
	case r.Status == completed:
		return r.expired(now) && !c.Off.has(ExpiryInCondition)
	case r.Lease == 0: // another tool's
		return r.expired(now)
	default:
		return r.Lease+skew < now || c.Off.has(TakeoverByLeaseOnly) && r.expired(now)
	}
}

// claimRow is a conditional write.
func (c *Config) claimRow(r Row, q request) (Row, answer) {
	switch {
	case r.Status == inprogress && r.Owner == q.Owner && q.Owner != 0:
		if c.Off.has(OwnClaimRecognised) {
			return r, answerHeld
		}
		return r, answerOK
	case c.free(r, q.Now):
		return Row{inprogress, q.Owner, q.Lease, q.Expiry}, answerOK
	case r.Status == completed:
		return r, answerDone
	default:
		return r, answerHeld
	}
}

// lookRow is a claim that only reads.
func (c *Config) lookRow(r Row, q request) answer {
	if _, a := c.claimRow(r, q); a != answerOK {
		return a
	}
	return answerFree
}

// completeRow is a conditional write.
func (c *Config) completeRow(r Row, q request) (Row, answer) {
	mine := r.Owner == q.Owner || c.Off.has(OwnerOnComplete)
	switch {
	case r.Status == absent || !mine:
		return r, answerLost
	case r.Status == completed && !c.Off.has(StatusOnComplete):
		if c.Off.has(OwnCompletionRecognised) {
			return r, answerLost
		}
		return r, answerOK
	case r.Status == inprogress && r.expired(q.Now) && !c.Off.has(ExpiryOnComplete):
		return r, answerLost
	}
	return Row{completed, r.Owner, 0, q.Expiry}, answerOK
}

// releaseRow is a conditional write.
func (c *Config) releaseRow(r Row, q request) (Row, answer) {
	mine := r.Owner == q.Owner || c.Off.has(OwnerOnRelease)
	switch {
	case r.Status == absent:
		if c.Off.has(OwnReleaseRecognised) {
			return r, answerLost
		}
		return r, answerOK
	case !mine:
		return r, answerLost
	case r.Status == completed && !c.Off.has(StatusOnRelease):
		return r, answerAlready
	}
	return Row{}, answerOK
}

// renewRow is a conditional write.
func (c *Config) renewRow(r Row, q request) (Row, answer) {
	switch {
	case r.Status == absent || r.Owner != q.Owner && r.Owner != q.NewOwner:
		return r, answerLost
	case r.Status == completed:
		return r, answerAlready
	case r.Owner == q.NewOwner && q.Owner != q.NewOwner:
		return r, answerOK
	case r.expired(q.Now):
		return r, answerLost
	}
	r.Owner, r.Lease, r.Expiry = q.NewOwner, q.Lease, q.Expiry
	return r, answerOK
}
