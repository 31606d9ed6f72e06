package protocol

import "slices"

// request returns what an attempt's call asks the store.
func (c *Config) request(s *State, i int) request {
	a := &s.Attempts[i]
	q := request{Op: a.Op, Attempt: int8(i), Owner: c.token(s, i, a.Version), Now: a.Sent}
	switch a.Op {
	case opClaim, opLook, opPut:
		q.Lease, q.Expiry = c.leaseAndExpiry(a.Sent)
	case opComplete:
		q.Expiry = a.Sent + c.KeyLife
	case opRenew:
		q.NewOwner = c.token(s, i, a.Version+1)
		q.Lease, q.Expiry = c.leaseAndExpiry(a.Sent)
	}
	return q
}

// leaseAndExpiry returns those of a claim.
func (c *Config) leaseAndExpiry(now int8) (lease, expiry int8) {
	lease, expiry = now+c.Lease, now+c.KeyLife
	if !c.Off.has(ExpiryAfterLease) {
		expiry = max(expiry, lease+c.Skew)
	}
	if c.Off.has(LeaseAlways) {
		lease = 0
	}
	return lease, expiry
}

// apply makes the store do what a request asks, and the observer remember it.
func (c *Config) apply(s *State, q request) answer {
	a := &s.Attempts[q.Attempt]
	r := &s.Records[a.Record]
	before, reply := r.Row, answerOK
	switch q.Op {
	case opLook:
		return c.lookRow(before, q)
	case opClaim:
		r.Row, reply = c.claimRow(before, q)
	case opPut:
		r.Row = Row{inprogress, q.Owner, q.Lease, q.Expiry}
	case opComplete:
		r.Row, reply = c.completeRow(before, q)
	case opRelease:
		r.Row, reply = c.releaseRow(before, q)
	case opRenew:
		r.Row, reply = c.renewRow(before, q)
	}
	if reply != answerOK || r.Row == before && q.Op != opComplete && q.Op != opClaim {
		return reply
	}
	switch q.Op {
	case opClaim, opPut:
		a.Held = true // also if the row shows that the claim was made before
		if q.Lease != 0 {
			a.Lease = q.Lease
		}
		if r.Completed < q.Now { // that life of the key is over
			r.Completed, r.Business = 0, 0
		}
	case opComplete:
		if before.Status == completed && !c.Off.has(StatusOnComplete) {
			return reply // it was stored before
		}
		a.Held, a.Stored, r.Completed = false, true, q.Expiry
		if c.Transaction && !c.Off.has(OneTransaction) {
			r.Business++
		}
	case opRelease:
		a.Held = false
	}
	return reply
}

// excuse makes the observer forget a record: someone has written its row without conditions.
func (s *State) excuse(record int8) {
	for i := range s.Attempts {
		a := &s.Attempts[i]
		if a.Phase != unused && a.Record == record && (a.Started || a.Held) {
			a.Held, a.Excused = false, true
		}
	}
	s.Records[record].Completed, s.Records[record].Business = 0, 0
}

// addLate puts a request where it can still arrive. One more than there is room for is lost.
func (s *State) addLate(q request) {
	for i := range s.Late {
		if s.Late[i].Op == noOp {
			s.Late[i] = q
			s.sortLate()
			return
		}
	}
}

func (s *State) takeLate(i int) request {
	q := s.Late[i]
	s.Late[i] = request{}
	s.sortLate()
	return q
}

// sortLate puts the requests in an order of their own, so that states that differ only in it are one.
func (s *State) sortLate() { slices.SortFunc(s.Late[:], compareRequests) }

func compareRequests(a, b request) int {
	for _, d := range [...]int8{
		int8(b.Op) - int8(a.Op), a.Attempt - b.Attempt, a.Now - b.Now, a.Owner - b.Owner, a.Lease - b.Lease, a.Expiry - b.Expiry,
	} {
		if d != 0 {
			return int(d)
		}
	}
	return 0
}

// peerClaims is another tool's conditional claim. It knows of no skew and no owners. It returns false if it is refused.
func (c *Config) peerClaims(s *State) bool {
	r := &s.Records[0].Row
	if !(r.Status == absent || r.Status == completed && r.expired(s.Now) || r.Status == inprogress && r.Lease < s.Now) {
		return false
	}
	s.excuse(0)
	*r = Row{Status: inprogress, Lease: s.Now + c.Lease, Expiry: s.Now + c.KeyLife}
	s.Peer = peer{running, r.Lease}
	return true
}

// peerCompletes is another tool's update, which leaves attributes alone that it does not know, such as the owner.
func (c *Config) peerCompletes(s *State) {
	s.excuse(0)
	r := &s.Records[0]
	r.Row = Row{completed, r.Row.Owner, 0, s.Now + c.KeyLife}
	r.Completed = r.Row.Expiry
	s.Peer = peer{Phase: ended}
}

// peerDeletes is another tool's deletion, after its work has failed.
func (s *State) peerDeletes() {
	s.excuse(0)
	s.Records[0].Row = Row{}
	s.Peer = peer{Phase: ended}
}
