package idempotency

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"
)

// The defaults of Options.
const (
	// DefaultExpiry is how long a key lives that Do or Wrap completed, as in Powertools for AWS Lambda.
	DefaultExpiry = time.Hour
	// DefaultLease is how long a claim lives where there is no deadline to derive it from.
	DefaultLease = time.Minute
	// DefaultSkew is how far the clocks of two workers may differ.
	DefaultSkew = time.Second
)

// MissingKey says what to do with work that has no key.
type MissingKey uint8

const (
	// MissingKeyFails: it fails with ErrKeyMissing. This is the default.
	MissingKeyFails MissingKey = iota
	// MissingKeyRunsUnprotected: it is done without a claim, however often it is asked for.
	MissingKeyRunsUnprotected
)

// AskFirst says whether to look whether work is done before claiming it.
type AskFirst uint8

const (
	// AskFirstDefault: not for Do, Wrap, SQS and EventBridge. For streams as soon as half of a batch's records so far were
	// done already: it is a segment that is delivered again.
	AskFirstDefault AskFirst = iota
	// AskFirstNever: work is claimed.
	AskFirstNever
	// AskFirstAlways: it is looked for, and claimed if it is not found done.
	AskFirstAlways
)

// HeldElsewhere says what becomes of a record whose key another worker holds.
type HeldElsewhere uint8

const (
	// HeldElsewhereFails: it is told as failed, so that it comes back. This is the default.
	HeldElsewhereFails HeldElsewhere = iota
	// HeldElsewhereDrops: it is told as done, with the outcome batch.Ignored, and does not come back. It loses work. The
	// holder may be an earlier delivery of the very record, whose process has crashed: until its lease ends, the next
	// delivery is dropped, and nobody does the work. The same goes for a holder that fails after that, unless its own
	// record comes back. Where records are kept in order, those behind it run while the holder is still at work.
	HeldElsewhereDrops
)

// Options are the options of a Guard. The zero value is a good default.
type Options struct {
	// Expiry is how long a key lives after its completion. 0 means the source's default, which outlives the source's
	// redeliveries, or DefaultExpiry for Do and Wrap. Otherwise it is at least a second, and no less than Lease.
	Expiry time.Duration

	// Lease is how long a claim is good for if it is neither completed nor released, since its worker crashed. 0 means
	// until the deadline of the invocation, that of its context, or DefaultLease where there is none; a batch's Timeout
	// makes it shorter. Otherwise it is at least 10 milliseconds. The context of the work ends before its lease does, by
	// a tenth of it but no more than a second, so a longer Lease than the work needs only delays the retry after a crash,
	// and a shorter one cuts the work off.
	Lease time.Duration

	// Skew is how far the clocks of two workers may differ: a claim is taken over when its lease ended longer ago than
	// that. 0 means DefaultSkew. Negative means none.
	Skew time.Duration

	// Wait is how long to wait for a claim that is held elsewhere, until it is completed, released or can be taken
	// over. 0 means the source's default: not at all for Do, Wrap and SQS; as long as there is time for streams and
	// EventBridge. Negative means not at all. Each look at the key costs one refused write, the first after
	// 100 milliseconds, later ones up to two seconds apart.
	Wait time.Duration

	// HeldElsewhere says what becomes of a record whose key another worker still holds after Wait. With HeldElsewhereDrops a
	// Wait of 0 means not at all, for every source. It is for the sources: Do and Wrap return ErrInProgress in any case,
	// since their caller waits for a result, and there is none.
	HeldElsewhere HeldElsewhere

	// MissingKey says what to do with work that has no key.
	MissingKey MissingKey

	// AskFirst says whether to look whether work is done before claiming it. In DynamoDB looking costs a fifth of a claim
	// that is refused, and is spent for nothing if the work is not done. Stores for which it makes no difference claim.
	AskFirst AskFirst

	// ReadThenMark lets work begin after one read that does not find it done, and records it by one write after it. Nothing
	// is claimed. It is for work that bears being done twice at the same time, and is for little more than half of the price:
	// in DynamoDB a consistent read and a write, where a claim and its completion are two writes, and nothing but the read
	// for work that fails or was done before.
	//
	// Work that is asked for after it was recorded is not done again while its key lives. Beyond that nothing is excluded: two
	// workers that get the same key at the same time both do the work, as does whoever gets it while a worker is at it, or
	// after one that crashed. The first to end is recorded. A key that another guard or tool has claimed is in progress, as
	// ever. There is no lease: the context of work ends with the invocation, and Info.Lease is the end of that, or zero. A
	// transaction needs a claim, and is an error.
	//
	// Hooks are told EventClaimed of work that begins, EventReleased of work that failed, EventCompleted of work that is
	// recorded, also where another run of it was recorded first, and EventLost where the key was claimed meanwhile, or
	// recorded for another payload.
	//
	// The store has to be a Marker. Lease, CountAttempts, AskFirst and HeldElsewhere are about claims, and have to be left at
	// their defaults. Default false.
	ReadThenMark bool

	// HashKeys stores SHA-256 hashes of keys instead of the keys, for keys that are personal data. Errors and log lines
	// show the hash too. There is no other algorithm to choose: two keys with one hash would be one, and SHA-256 is the
	// shortest that nobody can make collide. What other tools store is made by package powertools. Default false.
	HashKeys bool

	// CountAttempts makes the store count how often work was started under a key. A claim that fails then keeps its
	// entry until the key expires.
	CountAttempts bool

	// FailUnrecorded makes work fail that succeeded, but whose completion the store did not take. By default it counts
	// as done, since failing repeats it for certain.
	FailUnrecorded bool

	// FailOpen lets work run unprotected where the store cannot decide its claim: it fails, is unusable or full. By default
	// such work fails and comes back, which is safe. With FailOpen the work of every record that comes while the store is
	// down is done as often as the record is delivered, at the same time too, and is not recorded as done; a transaction
	// cannot be stored with it, so that work which collects in one fails. It changes nothing for work whose key is held
	// elsewhere or was used with another payload, for which no time is left, or whose claim was made and then lost. Hooks
	// are told with EventUnprotected; a line is logged once. Streams are then as they are without a guard, one record at a
	// time up to the first failure. Default false.
	FailOpen bool

	// LocalCache is how many completed keys the guard keeps in memory, those used last, so that their replay costs no call
	// of the store. 0 means none. Powertools keeps 256 where it is asked to. A key is kept with its result, if that is no
	// more than 16 KiB, until it expires, and is checked for the fingerprint. What happens to a key in the store meanwhile,
	// such as its deletion by hand, shows only when it has left memory. It is of use only where one process sees a key
	// again, and each process of a function has its own.
	LocalCache int

	// Disabled lets all work run unprotected, without a call of the store, as if there were no guard: for tests and local
	// runs. The environment variables DisabledVariable and PowertoolsDisabledVariable do the same where one of them has a
	// value that strconv.ParseBool takes for true; any value that is empty or false changes nothing, and one that is neither
	// is an error of New. They are read by New. A warning is logged once a process. Sources still compute keys, so that a record which fails
	// for that fails here too. A transaction, which is part of a
	// completion, is an error then. Default false.
	Disabled bool

	// Results say how the results of Do and Wrap are kept where they are large. Batches store none.
	Results ResultOptions

	// Hooks are told of all that happens to keys, in this order, and cost nothing where there are none. None is nil.
	Hooks []Hook

	// Clock tells the time. Nil means time.Now.
	Clock func() time.Time

	// Logger gets a line where something is lost that no returned error tells: a completion that was not stored, a
	// result that cannot be replayed, a hook that panicked, protection. Nil means slog.Default().
	Logger *slog.Logger
}

// validate returns an error that names each option that is out of its limits, what it is and what it may be.
func (o *Options) validate() error {
	var errs []error
	check := func(ok bool, name string, got any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("idempotency: Options.%s is %v, want %s", name, got, want))
		}
	}
	check(o.Expiry == 0 || o.Expiry >= time.Second, "Expiry", o.Expiry, "0 (for the default) or at least 1s")
	check(o.Lease == 0 || o.Lease >= 10*time.Millisecond, "Lease", o.Lease, "0 (for the default) or at least 10ms")
	check(o.Expiry < time.Second || o.Expiry >= o.Lease, "Expiry", o.Expiry,
		fmt.Sprintf("no less than Options.Lease, which is %v", o.Lease))
	check(o.MissingKey <= MissingKeyRunsUnprotected, "MissingKey", o.MissingKey, "one of the MissingKey constants")
	check(o.HeldElsewhere <= HeldElsewhereDrops, "HeldElsewhere", o.HeldElsewhere, "one of the HeldElsewhere constants")
	check(o.LocalCache >= 0, "LocalCache", o.LocalCache, "0 (for none) or more")
	check(o.AskFirst <= AskFirstAlways, "AskFirst", o.AskFirst, "one of the AskFirst constants")
	o.validateMark(check)
	if err := o.Results.validate(); err != nil {
		errs = append(errs, err)
	}
	for i, hook := range o.Hooks {
		got := any(hook)
		if v := reflect.ValueOf(hook); (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
			got, hook = fmt.Sprintf("a nil %T", hook), nil
		}
		check(hook != nil, fmt.Sprintf("Hooks[%d]", i), got, "a Hook")
	}
	return errors.Join(errs...)
}

// asksFirst reports whether to ask first for work that is likely done or not.
func (o *Options) asksFirst(likely bool) bool {
	return o.AskFirst == AskFirstAlways || likely && o.AskFirst == AskFirstDefault
}
