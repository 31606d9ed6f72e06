package protocol

// Times are whole ticks. A State holds no pointers and no padding, so that it is compared and hashed as it is.

const (
	maxAttempts  = 5
	maxProcesses = 3
	maxRecords   = 3
	maxLate      = 4
)

// State is one state of everything: the store, the network, the workers, and what an observer who sees all remembers.
type State struct {
	Now       int8 // true time. A process's clock shows it plus the process's offset.
	Faults    int8 // how many are left
	Records   [maxRecords]record
	Processes [maxProcesses]process
	Attempts  [maxAttempts]attempt
	Late      [maxLate]request // requests that nobody waits for and that can still arrive, in order of their bytes
	Peer      peer
}

// record is a record of the source and its key.
type record struct {
	Row  Row
	Told told // what the source was told, where the lane is modelled

	// What the observer remembers.
	Completed int8 // expiry of the completion that was stored in this life of the key, 0: none
	Business  int8 // how often the business row was changed in this life of the key
}

type told uint8

const (
	notTold told = iota
	toldDone
	toldUnrecorded // done, and flagged as not recorded
)

// process is a Lambda environment. Only lanes use Open and Ready.
type process struct {
	Frozen bool
	Open   bool // it has a batch that it has not answered yet
	Ready  bool // the lane's second record may start
}

type phase uint8

const (
	unused    phase = iota
	claiming        // the claim is under way
	writing         // one winner off: the write that follows the look
	running         // the handler runs and has had no effect yet
	wrote           // transaction off: the business row is changed, the handler has not returned
	returned        // the handler has had its effect and returned nil
	settling        // the completion is under way
	releasing       // a release is under way
	ended
	crashed
)

type callState uint8

const (
	noCall     callState = iota
	sent                 // the request is under way
	answered             // so is the reply
	unanswered           // the caller has given up on this try
)

type outcome uint8

const (
	noOutcome  outcome = iota
	succeeded          // told as done
	unrecorded         // told as done, flagged
	replayed           // told as done
	failed             // told as failed: held elsewhere, skipped, lost and the rest
)

func (o outcome) done() bool { return o == succeeded || o == unrecorded || o == replayed }

// attempt is one delivery of one record to one process. It has an owner token of its own.
type attempt struct {
	Phase   phase
	Process int8
	Record  int8
	Outcome outcome

	// The call that is under way.
	Call   callState
	Op     op
	Answer answer
	Tries  int8
	Sent   int8 // by the process's clock
	Group  bool // it shares the call of another attempt of its process

	// What the worker knows.
	Lease     int8 // end of its lease
	Version   int8 // how often the owner token was renewed
	Renewals  int8 // how often it tried to
	Undecided bool // a try of this call may have been applied

	// What the observer remembers.
	Straggler bool // it ignores its context
	Faulted   bool // a fault kept it from finishing in time, or its completion from being stored
	Started   bool // its handler was started
	Failed    bool // its handler returned an error, and so says that there was no effect
	Effect    bool
	Held      bool // the store has made its claim, and neither its owner nor anyone by hand has ended it
	Stored    bool // the store has made its completion
	Excused   bool // its row was deleted by hand, or a peer wrote it
}

func (a *attempt) live() bool { return a.Phase != unused && a.Phase != ended && a.Phase != crashed }

// peer is another tool on the same table.
type peer struct {
	Phase phase // unused, running, ended
	Lease int8
}

// end forgets what nothing depends on any more, so that states that differ only in it are one.
func (a *attempt) end(p phase, o outcome) {
	a.Phase, a.Outcome = p, o
	a.hangUp()
	a.Version, a.Renewals, a.Straggler, a.Effect = 0, 0, false, false
	matters := a.Started && !a.Failed && !a.Excused && !a.Stored
	a.Faulted = a.Faulted && matters
	if !a.Held && !matters {
		a.Lease = 0
	}
}

func (a *attempt) hangUp() {
	a.Call, a.Op, a.Answer, a.Tries, a.Sent, a.Group, a.Undecided = noCall, noOp, noAnswer, 0, 0, false, false
}
