package protocol

// deliveries are what the source does, and the answers to it. It delivers a record at any time, also a second time.
func (n *successors) deliveries() {
	for p := range n.Offsets {
		process := int8(p)
		if n.s.Processes[p].Frozen || n.sameAsEarlier(p) {
			continue
		}
		switch {
		case !n.Lane:
			if !n.busy(process) {
				n.deliver(process, 0)
			}
		case n.s.Processes[p].Ready:
			if after := n.begin(); n.start(after, process, 1) {
				after.Processes[p].Ready = false
				n.end(Step{Kind: startsNext, Process: process, Record: 1})
			} else {
				n.answer(process) // the bounds allow no more: the batch's time is up
			}
		case n.s.Processes[p].Open:
			if !n.busy(process) {
				n.answer(process)
			}
		case !n.busy(process):
			n.deliverLane(process)
		}
	}
}

// sameAsEarlier reports whether an earlier process is in the same state with the same clock, so that what this one does
// is what that one does under another name.
func (n *successors) sameAsEarlier(p int) bool {
	for q := range p {
		if n.Offsets[q] == n.Offsets[p] && n.idle(q) && n.idle(p) {
			return true
		}
	}
	return false
}

// idle reports whether a process has nothing that it could tell from a fresh one.
func (n *successors) idle(p int) bool {
	for i := range n.s.Attempts {
		if a := &n.s.Attempts[i]; a.Phase != unused && a.Process == int8(p) && (a.live() || n.Lane) {
			return false
		}
	}
	return n.s.Processes[p] == process{}
}

func (n *successors) deliver(p int8, records ...int8) {
	after := n.begin()
	for _, r := range records {
		if !n.start(after, p, r) {
			return
		}
	}
	after.Processes[p].Open = n.Lane
	n.end(Step{Kind: delivers, Process: p, Record: records[0]})
}

// deliverLane delivers what is left of the batch.
func (n *successors) deliverLane(p int8) {
	var records []int8
	switch {
	case n.s.Records[0].Told == notTold:
		records = append(records, 0)
	case n.s.Records[1].Told == notTold:
		records = append(records, 1)
	}
	if n.Group && n.s.Records[2].Told == notTold {
		records = append(records, 2)
	}
	if len(records) > 0 {
		n.deliver(p, records...)
	}
}

// start begins an attempt at a record by sending its claim.
func (n *successors) start(s *State, p, record int8) bool {
	for i := range n.Attempts {
		a := &s.Attempts[i]
		if a.Phase != unused {
			continue
		}
		a.Process, a.Record = p, record
		operation := opClaim
		if n.Off.has(OneWinner) {
			operation = opLook
		}
		n.send(s, i, claiming, operation)
		a.Lease = a.Sent + n.Lease
		return true
	}
	return false
}

// busy reports whether a process works on something that it has not abandoned.
func (n *successors) busy(p int8) bool {
	for i := range n.s.Attempts {
		a := &n.s.Attempts[i]
		abandoned := a.Started && a.Faulted && n.clock(n.s, p) > a.deadline()
		if a.live() && a.Process == p && !abandoned {
			return true
		}
	}
	return false
}

func (s *State) hasAttempt(p, record int8) bool {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.live() && a.Process == p && a.Record == record {
			return true
		}
	}
	return false
}

// answer tells the source what became of the batch.
func (n *successors) answer(p int8) {
	after := n.begin()
	after.Processes[p] = process{}
	for i := range after.Attempts {
		a := &after.Attempts[i]
		if a.Phase != ended || a.Process != p {
			continue
		}
		r := &after.Records[a.Record]
		switch {
		case a.Outcome == unrecorded:
			r.Told = max(r.Told, toldUnrecorded)
		case a.Outcome.done():
			r.Told = max(r.Told, toldDone)
		}
		a.Outcome = noOutcome
	}
	n.end(Step{Kind: answersBatch, Process: p})
}
