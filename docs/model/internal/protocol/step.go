package protocol

// Step is one thing that happens.
type Step struct {
	Kind    kind
	Process int8
	Attempt int8
	Record  int8
	Request request // where one arrives
	Answer  answer  // where one is given or read
}

type kind uint8

const (
	ticks kind = iota
	delivers
	startsNext // of the lane
	arrives
	arrivesByToken // a transaction whose token the store still knows
	losesRequest
	losesReply
	losesGroupRequest
	losesGroupReply
	isDelayed
	isThrottled
	arrivesLate
	reads
	readsGroup
	resends
	givesUp
	hasEffect
	returnsError
	straggles
	completes
	completesGroup
	writesBusiness
	renews
	releasesAbandoned // settle by the handler's goroutine off
	answersBatch
	processCrashes
	processFreezes
	thaws
	deletesExpired
	deletesByHand
	evicts // live rows are kept off
	peerClaims
	peerCompletes
	peerDeletes
)

// isProgress reports whether workers and network do the step by themselves, without time passing and without a fault.
func (k kind) isProgress() bool {
	switch k {
	case startsNext, arrives, reads, readsGroup, resends, givesUp, hasEffect, completes, completesGroup, writesBusiness,
		answersBatch:
		return true
	}
	return false
}

// successors calls emit with every step from a state.
type successors struct {
	*Config
	s     *State
	emit  func(Step, *State)
	after State
}

// begin returns a copy of the state to change.
func (n *successors) begin() *State {
	n.after = *n.s
	return &n.after
}

func (n *successors) end(step Step) { n.emit(step, &n.after) }

// Initial is the state before anything happens.
func (c *Config) Initial() State { return State{Faults: c.Faults} }

// Next calls emit with every step from s.
func (c *Config) Next(s *State, emit func(Step, *State)) {
	n := &successors{Config: c, s: s, emit: emit}
	for i := range s.Attempts {
		if s.Attempts[i].live() {
			n.call(i)
			n.work(i)
		}
	}
	n.deliveries()
	n.environment()
}

// fault reports whether one of the kind may happen now.
func (n *successors) fault(k faults) bool { return n.s.Faults > 0 && n.Kinds&k != 0 }

// environment is what neither workers nor network do.
func (n *successors) environment() {
	if n.s.Now < n.Horizon && n.mayTick() {
		n.begin().Now++
		n.end(Step{Kind: ticks})
	}
	for i, q := range n.s.Late {
		if q.Op == noOp {
			continue
		}
		after := n.begin()
		after.takeLate(i)
		reply := n.apply(after, q)
		n.end(Step{Kind: arrivesLate, Attempt: q.Attempt, Record: n.s.Attempts[q.Attempt].Record, Request: q, Answer: reply})
	}
	for p := range n.Offsets {
		n.processFaults(int8(p))
	}
	for r := range n.s.Records {
		n.deletions(int8(r))
	}
	if n.Peer {
		n.peer()
	}
}

// mayTick reports whether time may pass. Those that no fault keeps from it are in time: a handler returns when its
// context ends, and a completion is settled before the lease ends.
func (n *successors) mayTick() bool {
	for i := range n.s.Attempts {
		a := &n.s.Attempts[i]
		if !a.live() || a.Faulted {
			continue
		}
		clock := n.clock(n.s, a.Process) + 1
		switch a.Phase {
		case running:
			if clock > a.deadline() && !n.Off.has(ContextEndsBeforeLease) {
				return false
			}
		case wrote, returned, settling:
			if clock > a.Lease {
				return false
			}
		}
	}
	return true
}

func (n *successors) processFaults(p int8) {
	if n.s.Processes[p].Frozen {
		n.begin().Processes[p].Frozen = false
		n.end(Step{Kind: thaws, Process: p})
	}
	working := false
	for i := range n.s.Attempts {
		working = working || n.s.Attempts[i].live() && n.s.Attempts[i].Process == p
	}
	if !working {
		return
	}
	if n.fault(freezes) && !n.s.Processes[p].Frozen {
		after := n.begin()
		after.Faults--
		after.Processes[p].Frozen = true
		for i := range after.Attempts {
			if a := &after.Attempts[i]; a.live() && a.Process == p {
				a.Faulted = true
			}
		}
		n.end(Step{Kind: processFreezes, Process: p})
	}
	// A process that is started anew makes a new guard, and with it a new token.
	if n.fault(crashes) && !n.Off.has(FreshOwner) {
		n.crash(p)
	}
}

// crash ends a process. The next delivery starts another in its place. Requests on their way can still arrive.
func (n *successors) crash(p int8) {
	after := n.begin()
	after.Faults--
	after.Processes[p] = process{}
	for i := range after.Attempts {
		a := &after.Attempts[i]
		if a.Process != p || a.Phase == unused {
			continue
		}
		if n.Lane {
			a.Outcome = noOutcome // the source is never told
		}
		if !a.live() {
			continue
		}
		if a.Call == sent {
			after.addLate(n.request(n.s, i))
		}
		a.Faulted = true
		a.end(crashed, noOutcome)
	}
	n.end(Step{Kind: processCrashes, Process: p})
}

func (n *successors) deletions(record int8) {
	row := n.s.Records[record].Row
	if row.Status == absent {
		return
	}
	// The table's clock may be as far ahead as any.
	if n.Deletion && row.expired(n.s.Now+n.Skew) {
		n.begin().Records[record].Row = Row{}
		n.end(Step{Kind: deletesExpired, Record: record})
	}
	if n.fault(handDeletions) {
		after := n.begin()
		after.Faults--
		after.excuse(record)
		after.Records[record].Row = Row{}
		n.end(Step{Kind: deletesByHand, Record: record})
	}
	if n.Off.has(LiveRowsAreKept) {
		n.begin().Records[record].Row = Row{}
		n.end(Step{Kind: evicts, Record: record})
	}
}

func (n *successors) peer() {
	switch n.s.Peer.Phase {
	case unused:
		if after := n.begin(); n.peerClaims(after) {
			n.end(Step{Kind: peerClaims})
		}
	case running:
		n.peerCompletes(n.begin())
		n.end(Step{Kind: peerCompletes})
		n.begin().peerDeletes()
		n.end(Step{Kind: peerDeletes})
	}
}
