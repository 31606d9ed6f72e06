package protocol

// Invariant is a property that every step must keep.
type Invariant uint64

// The invariants.
const (
	NoStartUnderLiveClaim Invariant = 1 << iota
	NoStartAfterCompletion
	StrangerChangesNothing
	DoneIsTrue
	RefusalIsTrue
	LostIsTrue
	RepeatExplained
	TransactionOnce
	BothOrNeither
	LaneInOrder
	NothingIsLost
)

// Description is an invariant in words.
type Description struct {
	Invariant Invariant
	Name      string
	Says      string // the sentence of the guarantee that it stands for
	broken    func(c *Config, before *State, step Step, after *State) bool
}

// Invariants returns all invariants, in words.
func Invariants() []Description { return invariants }

// String returns the invariant's name.
func (v Invariant) String() string {
	for i := range invariants {
		if invariants[i].Invariant == v {
			return invariants[i].Name
		}
	}
	return "no invariant"
}

var invariants = []Description{
	{
		NoStartUnderLiveClaim, "no-start-under-live-claim",
		"No handler is started while a live claim of another holds its key.", startsUnderLiveClaim,
	},
	{
		NoStartAfterCompletion, "no-start-after-completion",
		"No handler is started after its completion was stored, for as long as the key lives.", startsAfterCompletion,
	},
	{
		StrangerChangesNothing, "stranger-changes-nothing",
		"A completion, release or renewal by anyone but the owner changes nothing.", strangerChanges,
	},
	{
		DoneIsTrue, "done-is-true",
		"A record is told as done only if its handler returned nil and its completion was stored, or it is flagged as " +
			"unrecorded, or an earlier delivery's completion says so.", doneIsFalse,
	},
	{
		RefusalIsTrue, "refusal-is-true",
		"A claim is refused only because another's claim, or a completion that has not expired, is stored.", refusalIsFalse,
	},
	{
		LostIsTrue, "lost-is-true",
		"A claim is told as lost only if its completion is not stored, and not because it was released before.", lostIsFalse,
	},
	{
		RepeatExplained, "repeat-explained",
		"Work that was started is started again only if a fault (a crash, a freeze, a straggler, a completion that was lost or " +
			"refused) kept its completion from being stored before its lease ended, or if its row was written by hand or by a peer.",
		unexplainedRepeat,
	},
	{
		TransactionOnce, "transaction-once",
		"With the transaction the business row changes at most once in the life of a key.", changesTwice,
	},
	{
		BothOrNeither, "both-or-neither",
		"With the transaction the change of the business row and the completion are both there or both absent.", onlyOne,
	},
	{
		LaneInOrder, "lane-in-order",
		"A record of a lane starts only after the completion of the one before it is stored, and none before it starts later.",
		outOfOrder,
	},
	{
		NothingIsLost, "nothing-is-lost",
		"From every state some continuation without more faults finishes every record, a lease, two skews and a tick later at most.",
		nil, // judged by Settle
	},
}

// Judge returns the invariants that a step breaks.
func (c *Config) Judge(before *State, step Step, after *State) uint64 {
	broken := Invariant(0)
	for i := range invariants {
		if v := &invariants[i]; v.broken != nil && v.broken(c, before, step, after) {
			broken |= v.Invariant
		}
	}
	return uint64(broken)
}

// started returns the attempt whose handler the step has started, or -1.
func started(before *State, after *State) int {
	for i := range after.Attempts {
		if after.Attempts[i].Started && !before.Attempts[i].Started {
			return i
		}
	}
	return -1
}

// others calls f with the other attempts at the same record.
func (s *State) others(i int, f func(*attempt) bool) bool {
	for j := range s.Attempts {
		if b := &s.Attempts[j]; j != i && b.Phase != unused && b.Record == s.Attempts[i].Record && f(b) {
			return true
		}
	}
	return false
}

// holds reports whether an attempt has a live claim, by its own clock.
func (c *Config) holds(s *State, a *attempt) bool { return a.Held && c.clock(s, a.Process) <= a.Lease }

func startsUnderLiveClaim(c *Config, before *State, _ Step, after *State) bool {
	i := started(before, after)
	if i < 0 || after.Attempts[i].Excused {
		return false
	}
	if after.Peer.Phase == running && after.Now <= after.Peer.Lease && after.Records[0].Row.Owner == 0 &&
		after.Records[0].Row.Status == inprogress {
		return true
	}
	return after.others(i, func(b *attempt) bool { return c.holds(after, b) })
}

func startsAfterCompletion(c *Config, before *State, _ Step, after *State) bool {
	i := started(before, after)
	if i < 0 || after.Attempts[i].Excused {
		return false
	}
	return c.alive(after, after.Records[after.Attempts[i].Record].Completed)
}

// alive reports whether a completion with that expiry stands by all clocks, the table's too.
func (c *Config) alive(s *State, expiry int8) bool { return expiry != 0 && s.Now+c.Skew <= expiry }

func strangerChanges(c *Config, before *State, step Step, after *State) bool {
	q := step.Request
	if q.Op != opComplete && q.Op != opRelease && q.Op != opRenew {
		return false
	}
	switch step.Kind {
	case arrives, arrivesByToken, losesReply, arrivesLate:
		row := before.Records[step.Record].Row
		return row != after.Records[step.Record].Row && row.Owner != q.Owner
	}
	return false
}

func doneIsFalse(_ *Config, before *State, _ Step, after *State) bool {
	for i := range after.Attempts {
		a := &after.Attempts[i]
		if a.Outcome == before.Attempts[i].Outcome || a.Excused {
			continue
		}
		switch a.Outcome {
		case succeeded:
			return !before.Attempts[i].Effect || !a.Stored
		case unrecorded:
			return !before.Attempts[i].Effect
		}
	}
	return false
}

func refusalIsFalse(_ *Config, before *State, step Step, _ *State) bool {
	q, r := step.Request, &before.Records[step.Record]
	if step.Kind != arrives && step.Kind != losesReply || q.Op != opClaim && q.Op != opLook {
		return false
	}
	switch step.Answer {
	case answerHeld:
		return r.Row.Owner == q.Owner
	case answerDone:
		return r.Completed < q.Now // 0: none
	}
	return false
}

func lostIsFalse(_ *Config, before *State, step Step, _ *State) bool {
	if step.Kind != arrives || step.Answer != answerLost {
		return false
	}
	r := &before.Records[step.Record]
	switch step.Request.Op {
	case opRelease:
		return r.Row.Status == absent
	case opComplete:
		return r.Row.Status == completed && r.Row.Owner == step.Request.Owner
	}
	return false
}

func unexplainedRepeat(c *Config, before *State, _ Step, after *State) bool {
	i := started(before, after)
	return i >= 0 && !after.Attempts[i].Excused && after.others(i, func(b *attempt) bool {
		if !b.Started || b.Failed || b.Excused || b.Stored { // of those stored, no-start-after-completion judges
			return false
		}
		return !b.Faulted || c.clock(after, b.Process) <= b.Lease
	})
}

func changesTwice(_ *Config, _ *State, _ Step, after *State) bool {
	for i := range after.Records {
		if after.Records[i].Business > 1 {
			return true
		}
	}
	return false
}

func onlyOne(c *Config, _ *State, _ Step, after *State) bool {
	for i := range after.Records {
		if r := &after.Records[i]; c.Transaction && (r.Business != 0) != (r.Completed != 0) {
			return true
		}
	}
	return false
}

func outOfOrder(c *Config, before *State, _ Step, after *State) bool {
	i := started(before, after)
	if !c.Lane || i < 0 {
		return false
	}
	first := &after.Records[0]
	switch after.Attempts[i].Record {
	case 0:
		// The source was told that the first record is done, and flagged: it does not deliver it again, but a delivery
		// that it has made before may still be under way.
		return first.Told != toldUnrecorded && after.anyAttempt(1, func(b *attempt) bool { return b.Started })
	case 1:
		return first.Completed == 0 && first.Told != toldUnrecorded ||
			after.anyAttempt(0, func(b *attempt) bool { return c.holds(after, b) && first.Told == notTold })
	}
	return false
}

func (s *State) anyAttempt(record int8, f func(*attempt) bool) bool {
	for i := range s.Attempts {
		if b := &s.Attempts[i]; b.Phase != unused && b.Record == record && f(b) {
			return true
		}
	}
	return false
}
