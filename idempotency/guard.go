package idempotency

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Guard lets one caller at a time do the work of a key, and nobody once it is done. It is safe for concurrent use, and
// holds no state of its own: all that it knows is in its Store, and where Options.LocalCache asks for that, a copy of what
// cannot change any more.
type Guard struct {
	namespace string
	store     Store
	bulk      BulkStore // nil if the store gains nothing from calls for many
	marker    Marker    // nil: the guard claims. See Options.ReadThenMark
	options   Options
	now       func() time.Time
	skew      time.Duration
	cache     *cache // nil: none

	function string // the Lambda function's name, "" elsewhere

	openWarning    sync.Once // that work runs unprotected
	foreignWarning sync.Once // that another function's work is replayed
}

// New returns a Guard whose keys live in the namespace of the store. The namespace is part of every stored key and is
// never derived from names in code, so that renaming a function makes nothing run twice. Two functions that share a
// table and see the same keys need namespaces of their own; two versions of one function need the same.
//
// The error names each argument and option that is out of its limits.
func New(namespace string, store Store, optFns ...func(*Options)) (*Guard, error) {
	var options Options
	for _, fn := range optFns {
		if fn != nil {
			fn(&options)
		}
	}
	disabledBy, err := options.disabledBy()
	if err := errors.Join(validateNamespace(namespace), validateStore(store), options.validate(), err); err != nil {
		return nil, err
	}
	marker, err := options.markerOf(store)
	if err != nil {
		return nil, err
	}
	if disabledBy != "" {
		options.disable(disabledBy)
	}
	g := &Guard{namespace: namespace, store: store, marker: marker, options: options, function: os.Getenv(functionVariable), now: options.Clock}
	if g.now == nil {
		g.now = time.Now
	}
	g.options.Hooks = slices.Clone(g.options.Hooks)
	if bulk, ok := Bulk(store); ok {
		g.bulk = bulk
	}
	if options.LocalCache > 0 && !options.Disabled {
		g.cache = newCache(options.LocalCache)
	}
	g.skew = DefaultSkew
	if options.Skew != 0 {
		g.skew = max(options.Skew, 0)
	}
	return g, nil
}

func validateNamespace(namespace string) error {
	const want = "1 to 255 bytes of UTF-8 without '#'"
	if namespace == "" || len(namespace) > 255 || !utf8.ValidString(namespace) || strings.Contains(namespace, "#") {
		return fmt.Errorf("idempotency: namespace is %q, want %s", namespace, want)
	}
	return nil
}

func validateStore(store Store) error {
	if store == nil {
		return errors.New("idempotency: store is nil, want a Store")
	}
	if v := reflect.ValueOf(store); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("idempotency: store is a nil %T, want a Store", store)
	}
	if v, ok := store.(Validator); ok {
		return v.Validate()
	}
	return nil
}

// Options returns the options the guard was made with. They are a copy. Where an environment variable has disabled the
// guard, they say so: Disabled is true, and MissingKey is MissingKeyRunsUnprotected.
func (g *Guard) Options() Options {
	options := g.options
	options.Hooks = slices.Clone(options.Hooks)
	return options
}

// Request names the work that a claim is for. It is computed before the work, from what the work cannot change.
type Request struct {
	// Key is the work's key within the guard's namespace. An empty key is a missing one.
	Key string
	// Fingerprint is that of the payload, or empty. Work that was claimed with another fingerprint is not the same.
	Fingerprint string
	// Expiry is how long the key lives where Options.Expiry does not say. 0 means DefaultExpiry.
	Expiry time.Duration
	// Timeout is how long the work may take, if less than what is left of the invocation. 0 means no such limit.
	Timeout time.Duration
	// Attempt is the number of this attempt as far as the source knows. A store that counts attempts knows better.
	Attempt int
	// Poll is how often this work has looked at its key before, for hooks: whoever waits for a key that is held elsewhere
	// asks for it several times. Nothing else depends on it.
	Poll int
	// AskFirst says that the work is probably done already, if Options.AskFirst leaves that to the caller.
	AskFirst bool
}

// Claim asks for the work. Do, Wrap and the sources are built on it; it is for work that is no function.
//
// If the work is the caller's, Claim returns a Claim that the caller completes or releases. If the work is done, it
// returns one for which Replayed is true. Otherwise it returns an error and the work must not be done: ErrInProgress if
// another worker holds the key, ErrFingerprintMismatch, ErrKeyMissing, ErrLeaseTooShort if no time is left to begin,
// or an error of the store. In the last two cases the key is released again, as far as the store can be reached.
func (g *Guard) Claim(ctx context.Context, r Request) (*Claim, error) {
	c := &Claim{guard: g, request: r, attempt: r.Attempt}
	kind, err := g.claimAndTell(ctx, c)
	made := kind == EventClaimed || kind == EventTakenOver
	if made && len(g.options.Hooks) > 0 && !c.inTime(ctx) {
		// The hooks took so long. Work begun now would run into the next owner's.
		detached, cancel := Detach(ctx)
		defer cancel()
		err = errors.Join(c.tooLate(ctx), c.ReleaseUnstarted(detached))
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// TellMismatch tells the hooks that the work is refused with err, which should be ErrFingerprintMismatch, and asks no
// store. It is for whoever sees without one that a key names two payloads, as the sources do within a batch.
func (g *Guard) TellMismatch(ctx context.Context, r Request, err error) {
	c := &Claim{guard: g, request: r, attempt: r.Attempt}
	if r.Key != "" {
		c.key = storedKey(g.namespace, r.Key, g.options.HashKeys)
	}
	c.tell(ctx, EventMismatch, err)
}

// claimAndTell is claim, and tells the hooks what it came to, even where the store does not return.
func (g *Guard) claimAndTell(ctx context.Context, c *Claim) (EventKind, error) {
	kind, err := EventClaimFailed, errStorePanicked
	defer func() { c.tell(ctx, kind, err) }()
	kind, err = g.claim(ctx, c)
	return kind, err
}

// claim makes the claim, or has it say that the work is done. The kind is the guard's own judgement: errors of a store may
// wrap any other error.
func (g *Guard) claim(ctx context.Context, c *Claim) (EventKind, error) {
	if kind, err := c.open(ctx); kind != 0 {
		return kind, err
	}
	answered := false
	defer func() {
		if !answered { // the store panicked, perhaps after it had written
			_ = c.giveBack(ctx)
		}
	}()
	result, err := c.claim(ctx)
	answered = true
	kind, back, err := c.answered(ctx, &result, err)
	switch back {
	case backQuietly:
		_ = c.giveBack(ctx) // best effort: the claim's own error says what is wrong with the store
	case backTold:
		err = errors.Join(err, c.giveBack(ctx))
	}
	return c.failOpen(ctx, kind, err)
}

// await is Claim, but waits up to Options.Wait for a key that is held elsewhere. The last look is at the end of that.
func (g *Guard) await(ctx context.Context, r Request) (*Claim, error) {
	end := time.Now().Add(g.options.Wait)
	for ; ; r.Poll++ {
		c, err := g.Claim(ctx, r)
		held, ok := errors.AsType[*InProgressError](err)
		if !ok {
			return c, err
		}
		delay := held.RetryIn(r.Poll, time.Until(end))
		if delay == 0 || !sleep(ctx, delay) {
			return nil, err
		}
	}
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
