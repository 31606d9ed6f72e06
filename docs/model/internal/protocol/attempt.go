package protocol

// send begins a call.
func (n *successors) send(s *State, i int, p phase, o op) {
	a := &s.Attempts[i]
	a.hangUp()
	a.Phase, a.Op, a.Call, a.Tries = p, o, sent, 1
	a.Sent = n.clock(s, a.Process)
}

// work is what an attempt does without a call.
func (n *successors) work(i int) {
	a := &n.s.Attempts[i]
	if a.Call != noCall || n.s.Processes[a.Process].Frozen {
		return
	}
	clock := n.clock(n.s, a.Process)
	switch a.Phase {
	case running:
		n.handler(i, clock)
	case wrote:
		after := n.begin()
		n.returnNil(after, i)
		n.end(n.step(hasEffect, i))
	case returned:
		after := n.begin()
		if n.Off.has(SettleOutlivesContext) && clock >= a.deadline() {
			n.finish(after, i, unrecorded)
		} else {
			n.send(after, i, settling, opComplete)
		}
		n.end(n.step(completes, i))
		n.groups(i)
	}
}

// handler is what a running handler does.
func (n *successors) handler(i int, clock int8) {
	a := &n.s.Attempts[i]
	after := n.begin()
	if n.Transaction && n.Off.has(OneTransaction) {
		after.Attempts[i].Phase = wrote
		after.Records[a.Record].Business++
		n.end(n.step(writesBusiness, i))
	} else {
		n.returnNil(after, i)
		n.end(n.step(hasEffect, i))
	}
	if cancelled := clock >= a.deadline(); cancelled || n.fault(failures) {
		after := n.begin()
		if !cancelled {
			after.Faults--
		}
		after.Attempts[i].Failed = true
		n.giveBack(after, i)
		n.end(n.step(returnsError, i))
	}
	if n.fault(stragglers) && !a.Straggler {
		after := n.begin()
		after.Faults--
		after.Attempts[i].Straggler, after.Attempts[i].Faulted = true, true
		n.end(n.step(straggles, i))
	}
	if a.Renewals < n.Renewals && clock <= a.deadline() {
		after := n.begin()
		n.send(after, i, running, opRenew)
		after.Attempts[i].Renewals++
		n.end(n.step(renews, i))
	}
	if n.Off.has(SettleByTheHandlersGoroutine) && a.Straggler && a.Held && clock >= a.deadline() {
		after := n.begin()
		if q := n.request(n.s, i); !n.isLate(opRelease, i) {
			q.Op, q.Now = opRelease, clock
			after.addLate(q)
			n.end(n.step(releasesAbandoned, i))
		}
	}
}

func (n *successors) isLate(o op, i int) bool {
	for _, q := range n.s.Late {
		if q.Op == o && q.Attempt == int8(i) {
			return true
		}
	}
	return false
}

// returnNil is the handler's effect and return.
func (n *successors) returnNil(s *State, i int) {
	a := &s.Attempts[i]
	a.Phase, a.Effect = returned, true
	if n.Off.has(LaneWaitsForCompletion) {
		n.readyNext(s, a)
	}
}

// groups completes two records of a batch with one call.
func (n *successors) groups(i int) {
	if !n.Group {
		return
	}
	for j := i + 1; j < len(n.s.Attempts); j++ {
		b := &n.s.Attempts[j]
		if b.Phase == returned && b.Call == noCall && b.Process == n.s.Attempts[i].Process {
			after := n.begin()
			for _, k := range [...]int{i, j} {
				n.send(after, k, settling, opComplete)
				after.Attempts[k].Group = true
			}
			n.end(n.step(completesGroup, i))
		}
	}
}

// read is what an attempt makes of its call's answer.
func (n *successors) read(s *State, i int) {
	a := &s.Attempts[i]
	reply := a.Answer
	if reply == answerError {
		if a.Op == opClaim || a.Op == opLook || a.Op == opPut {
			n.undecided(s, i)
			return
		}
		a.Call, a.Answer, a.Group = unanswered, noAnswer, false
		return
	}
	switch a.Op {
	case opClaim, opLook, opPut:
		n.readClaim(s, i, reply)
	case opComplete:
		switch {
		case reply == answerOK, n.Off.has(LostIsFailed):
			n.finish(s, i, succeeded)
		default:
			n.finish(s, i, failed)
		}
	case opRelease:
		n.finish(s, i, failed)
	case opRenew:
		if reply == answerOK {
			a.Version++
			a.Lease = a.Sent + n.Lease
		} else {
			a.Renewals = n.Renewals
		}
		a.hangUp()
	}
}

func (n *successors) readClaim(s *State, i int, reply answer) {
	a := &s.Attempts[i]
	switch {
	case reply == answerDone:
		n.finish(s, i, replayed)
	case reply == answerHeld:
		n.finish(s, i, failed)
	case reply == answerFree:
		n.send(s, i, writing, opPut)
	case n.clock(s, a.Process) > a.deadline() && !n.Off.has(TimeCheckedBeforeStart):
		n.giveBack(s, i)
	default:
		a.hangUp()
		a.Phase, a.Started = running, true
	}
}

// giveUp is what an attempt does when its call has no answer.
func (n *successors) giveUp(s *State, i int) {
	a := &s.Attempts[i]
	switch a.Op {
	case opClaim, opLook, opPut:
		n.undecided(s, i)
	case opComplete:
		definite := !a.Undecided // each try was answered: none was applied
		switch {
		case n.Transaction && definite:
			a.Failed = true
			n.giveBack(s, i)
		case n.Transaction && n.Off.has(UndecidedTransactionKept), n.Off.has(NeverReleaseAfterSuccess):
			n.giveBack(s, i)
		case n.Transaction:
			n.finish(s, i, failed)
		default:
			n.finish(s, i, unrecorded)
		}
	case opRelease:
		n.finish(s, i, failed)
	case opRenew:
		a.Renewals = n.Renewals
		a.hangUp()
	}
}

// undecided ends an attempt whose claim may have been made or not.
func (n *successors) undecided(s *State, i int) {
	a := &s.Attempts[i]
	switch {
	case n.Off.has(FailClosed):
		a.hangUp()
		a.Phase, a.Started = running, true
	case n.Off.has(UndecidedIsGivenBack):
		n.finish(s, i, failed)
	default:
		n.giveBack(s, i)
	}
}

// giveBack releases an attempt's claim. The attempt ends as failed.
func (n *successors) giveBack(s *State, i int) { n.send(s, i, releasing, opRelease) }

// finish ends an attempt.
func (n *successors) finish(s *State, i int, o outcome) {
	a := &s.Attempts[i]
	a.end(ended, o)
	if o == succeeded || o == replayed || o == unrecorded && n.Off.has(LaneStopsAtUnrecorded) {
		n.readyNext(s, a)
	}
}

// readyNext lets the lane of a batch go on.
func (n *successors) readyNext(s *State, a *attempt) {
	if n.Lane && a.Record == 0 && s.Processes[a.Process].Open && s.Records[1].Told == notTold && !s.hasAttempt(a.Process, 1) {
		s.Processes[a.Process].Ready = true
	}
}
