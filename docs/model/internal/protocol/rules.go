package protocol

// Rules is a set of rules.
type Rules uint64

// Rules that can be switched off.
const (
	OneWinner Rules = 1 << iota
	FreshOwner
	OwnerOnComplete
	OwnerOnRelease
	StatusOnComplete
	StatusOnRelease
	OwnClaimRecognised
	OwnCompletionRecognised
	OwnReleaseRecognised
	RenewComparesAndSets
	LeaseAlways
	SkewInTakeover
	ExpiryAfterLease
	ExpiryInCondition
	ExpiryOnComplete
	TakeoverByLeaseOnly
	ContextEndsBeforeLease
	SettleOutlivesContext
	SettleByTheHandlersGoroutine
	FailClosed
	UndecidedIsGivenBack
	TimeCheckedBeforeStart
	NeverReleaseAfterSuccess
	LostIsFailed
	LaneWaitsForCompletion
	LaneStopsAtUnrecorded
	StatementsJudgedAlone
	OneTransaction
	UndecidedTransactionKept
	LiveRowsAreKept
)

func (r Rules) has(rule Rules) bool { return r&rule != 0 }

// Rule is one rule of the protocol, and what happens without it.
type Rule struct {
	Bit      Rules
	Name     string // also of the trace's file
	Says     string // the rule
	Off      string // what is done in its place
	Scenario string // where its absence shows
	Breaks   Invariant
	// Spare says why nothing breaks without it, if nothing does. Breaks and Scenario are empty then.
	Spare string
}

// TheRules returns every rule that can be switched off.
func TheRules() []Rule {
	return []Rule{
		{
			Bit: OneWinner, Name: "one-winner", Says: "A claim is one conditional write.",
			Off:      "A claim reads the row, and then writes it.",
			Scenario: "quiet", Breaks: NoStartUnderLiveClaim,
		},
		{
			Bit: FreshOwner, Name: "fresh-owner", Says: "Every attempt to claim has an owner token of its own.",
			Off:      "A process has one token for all its attempts.",
			Scenario: "faults", Breaks: NoStartUnderLiveClaim,
		},
		{
			Bit: OwnerOnComplete, Name: "owner-on-complete", Says: "A completion requires that the row's owner is the caller.",
			Off:      "A completion requires only that the row is INPROGRESS.",
			Scenario: "faults", Breaks: NoStartAfterCompletion,
		},
		{
			Bit: OwnerOnRelease, Name: "owner-on-release", Says: "A release requires that the row's owner is the caller.",
			Off:      "A release requires only that the row is INPROGRESS.",
			Scenario: "faults", Breaks: NoStartUnderLiveClaim,
		},
		{
			Bit: StatusOnComplete, Name: "status-on-complete", Says: "A completion requires that the row is INPROGRESS.",
			Off:      "A completion requires only that the row's owner is the caller.",
			Scenario: "transaction", Breaks: TransactionOnce,
		},
		{
			Bit: StatusOnRelease, Name: "status-on-release", Says: "A release requires that the row is INPROGRESS.",
			Off: "A release requires only that the row's owner is the caller.",
			Spare: "An owner releases only what it has not tried to complete, so its release never finds its own completion. " +
				"It is the second line behind never-release-after-success and settle-by-the-handlers-goroutine.",
		},
		{
			Bit: OwnClaimRecognised, Name: "own-claim", Says: "A refused claim that shows the caller's token is the caller's.",
			Off:      "It is taken for another worker's.",
			Scenario: "faults", Breaks: RefusalIsTrue,
		},
		{
			Bit: OwnCompletionRecognised, Name: "own-completion",
			Says:     "A refused completion that shows the caller's token and COMPLETED is stored.",
			Off:      "It is taken for a lost claim.",
			Scenario: "faults", Breaks: LostIsTrue,
		},
		{
			Bit: OwnReleaseRecognised, Name: "own-release", Says: "A release that finds nothing is released.",
			Off:      "It is taken for a lost claim.",
			Scenario: "faults", Breaks: LostIsTrue,
		},
		{
			Bit: RenewComparesAndSets, Name: "renew-compares-and-sets",
			Says:     "A renewal exchanges the owner token for a new one.",
			Off:      "A renewal keeps the token, so that a late copy of it passes for a new one.",
			Scenario: "renewal", Breaks: NoStartUnderLiveClaim,
		},
		{
			Bit: LeaseAlways, Name: "lease-always", Says: "A claim always has a lease.",
			Off:      "Claims have none, and are held until they expire.",
			Scenario: "faults", Breaks: NothingIsLost,
		},
		{
			Bit: SkewInTakeover, Name: "skew", Says: "A claim is taken over only when its lease ended more than Skew ago.",
			Off:      "It is taken over when its lease has ended.",
			Scenario: "faults", Breaks: NoStartUnderLiveClaim,
		},
		{
			Bit: ExpiryAfterLease, Name: "expiry-after-lease", Says: "A claim's expiry is later than its lease and Skew.",
			Off:      "A claim expires when the key's life is over, however long its lease is.",
			Scenario: "expiry", Breaks: NoStartUnderLiveClaim,
		},
		{
			Bit: ExpiryInCondition, Name: "expiry-in-condition",
			Says:     "A claim's condition tests the expiry of a completion.",
			Off:      "A completion stands until the table deletes it.",
			Scenario: "expiry", Breaks: RefusalIsTrue,
		},
		{
			Bit: ExpiryOnComplete, Name: "expiry-on-complete",
			Says: "A completion or renewal requires that the claim has not expired.",
			Off:  "It does not.",
			Spare: "A claim that has expired and that nobody took over is still its owner's. The rule makes the answer the same " +
				"whether or not the table has deleted the row.",
		},
		{
			Bit: TakeoverByLeaseOnly, Name: "takeover-by-lease-only",
			Says: "An INPROGRESS row with a lease is free when its lease is over, whatever its expiry.",
			Off:  "It is free as well when it has expired.",
			Spare: "Our claims expire after their lease, so expiry adds nothing. It is the second line behind expiry-after-lease, " +
				"for rows of tools that do not keep that.",
		},
		{
			Bit: ContextEndsBeforeLease, Name: "context-ends-before-lease",
			Says:     "The handler's context ends before its lease does.",
			Off:      "The handler runs for as long as it likes.",
			Scenario: "quiet", Breaks: RepeatExplained,
		},
		{
			Bit: SettleOutlivesContext, Name: "settle-outlives-context",
			Says:     "Completions and releases survive the end of the handler's context.",
			Off:      "They are not sent once it has ended.",
			Scenario: "quiet", Breaks: RepeatExplained,
		},
		{
			Bit: SettleByTheHandlersGoroutine, Name: "settle-by-the-handlers-goroutine",
			Says:     "Only the goroutine that ran the handler settles its claim, after the handler has returned.",
			Off:      "The claim of a handler that ignores its cancelled context is released when the batch is answered.",
			Scenario: "faults", Breaks: RepeatExplained,
		},
		{
			Bit: FailClosed, Name: "fail-closed", Says: "If a claim cannot be decided, the handler does not run.",
			Off:      "It runs.",
			Scenario: "faults", Breaks: NoStartUnderLiveClaim,
		},
		{
			Bit: UndecidedIsGivenBack, Name: "undecided-is-given-back",
			Says: "A claim that cannot be decided is released, in case it was made.",
			Off:  "It is left to its lease.",
			Spare: "The lease ends it in any case. The release saves the redelivery from waiting for that, and is best effort: " +
				"a claim that arrives after its release is held until its lease ends.",
		},
		{
			Bit: TimeCheckedBeforeStart, Name: "time-checked-before-start",
			Says:     "Time and lease are checked again between the claim's reply and the handler.",
			Off:      "The handler starts whenever the reply comes.",
			Scenario: "quiet", Breaks: NoStartUnderLiveClaim,
		},
		{
			Bit: NeverReleaseAfterSuccess, Name: "never-release-after-success",
			Says:     "If the handler has succeeded and the completion is not stored, the claim is not released.",
			Off:      "It is released, so that the record can be tried again.",
			Scenario: "faults", Breaks: RepeatExplained,
		},
		{
			Bit: LostIsFailed, Name: "lost-is-failed", Says: "A record whose claim was lost is failed.",
			Off:      "It is told as done, since its handler has succeeded.",
			Scenario: "faults", Breaks: DoneIsTrue,
		},
		{
			Bit: LaneWaitsForCompletion, Name: "lane-waits-for-completion",
			Says:     "A lane goes on only after its record's completion is stored.",
			Off:      "It goes on when the handler has returned.",
			Scenario: "lane", Breaks: LaneInOrder,
		},
		{
			Bit: LaneStopsAtUnrecorded, Name: "lane-stops-at-unrecorded",
			Says:     "A record whose completion could not be stored stops its lane.",
			Off:      "The lane goes on: the record is done.",
			Scenario: "lane", Breaks: LaneInOrder,
		},
		{
			Bit: StatementsJudgedAlone, Name: "statements-judged-alone",
			Says:     "Each completion of a group is judged by its own answer.",
			Off:      "All are taken for stored if the call succeeded for any.",
			Scenario: "group", Breaks: DoneIsTrue,
		},
		{
			Bit: OneTransaction, Name: "one-transaction",
			Says:     "The business row and the completion are written by one transaction.",
			Off:      "The business row is written first, the completion after it.",
			Scenario: "transaction", Breaks: TransactionOnce,
		},
		{
			Bit: UndecidedTransactionKept, Name: "undecided-transaction-kept",
			Says:     "A claim whose transaction cannot be decided is not released.",
			Off:      "It is released.",
			Scenario: "transaction", Breaks: RepeatExplained,
		},
		{
			Bit: LiveRowsAreKept, Name: "live-rows-are-kept",
			Says:     "A store that is full refuses new claims, and forgets no live claim and no unexpired completion.",
			Off:      "It drops any row to make room.",
			Scenario: "quiet", Breaks: NoStartUnderLiveClaim,
		},
	}
}
