package watermarktest

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

// broken is a store in memory that breaks the rule that its fault names, and no other.
type broken struct {
	fault fault
	calls atomic.Int64

	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	position watermark.Position
	owner    string
	lease    time.Time // zero: nobody has the shard
	expiry   time.Time
}

func newBroken(f fault) *broken { return &broken{fault: f, entries: make(map[string]entry)} }

func (s *broken) is(f fault) bool { return s.fault == f }

// begin returns why a call does nothing. Otherwise the store is locked.
func (s *broken) begin(ctx context.Context, r interface{ Validate() error }) error {
	if err := ctx.Err(); err != nil {
		if s.is(contextLost) {
			return idempotency.ErrClaimLost
		}
		return err
	}
	if err := r.Validate(); err != nil && !s.is(wrongTaken) {
		if s.is(wrongIsLost) {
			return idempotency.ErrClaimLost
		}
		return err
	}
	s.mu.Lock()
	s.calls.Add(1)
	return nil
}

// pause lets another call in between a look and the write that relies on it, where that is the fault.
func (s *broken) pause(f fault) {
	if !s.is(f) {
		return
	}
	s.mu.Unlock()
	for calls, end := s.calls.Load(), time.Now().Add(time.Millisecond); s.calls.Load() == calls && time.Now().Before(end); {
		runtime.Gosched()
	}
	s.mu.Lock()
}

func (s *broken) key(key string) string {
	switch s.fault {
	case keysFolded:
		return strings.ToLower(key)
	case keysCut:
		return key[:min(len(key), 1000)]
	case keysTrimmed:
		return strings.TrimSpace(key)
	case sharedPosition:
		return "all"
	}
	return key
}

func (s *broken) Claim(ctx context.Context, r watermark.ClaimRequest) (watermark.Position, error) {
	if err := s.begin(ctx, r); err != nil {
		return none, err
	}
	defer s.mu.Unlock()
	key := s.key(r.Key)
	e, known := s.entries[key]
	mine := known && e.owner == r.Owner
	switch {
	case mine && e.lease.IsZero() && !s.is(ownClaimReleased):
		return none, idempotency.ErrClaimLost
	case mine && s.is(ownClaimWrites):
		e.position = none
	case mine && !e.lease.IsZero() && !s.is(ownClaimUnknown):
		return s.shown(e, r.Now), nil
	case !s.free(e, r):
		if s.is(claimRefusedKeep) {
			e.lease = r.Lease
			s.entries[key] = e
		}
		held := r.InProgress(time.UnixMilli(e.lease.UnixMilli()))
		if s.is(freeWrong) {
			held.Free = time.Now().Add(held.Lease.Sub(r.Now))
		}
		return none, held
	case s.expired(e, r.Now) && !s.is(expiryNever) && !s.is(positionHidden), s.is(claimForgets) && !e.lease.IsZero():
		e.position = none
	}
	shown := s.shown(e, r.Now)
	s.pause(twoWinners)
	if !known || !s.is(claimKeepsExpiry) {
		e.expiry = s.seconds(r.Expiry)
	}
	e.owner, e.lease = r.Owner, r.Lease
	switch {
	case s.is(leaseSeconds):
		e.lease = time.Unix(r.Lease.Unix(), 0)
	case s.is(leaseShort) && r.Lease.Sub(r.Now) > 24*time.Hour:
		e.lease = r.Now.Add(24 * time.Hour)
	}
	s.entries[key] = e
	return shown, nil
}

// shown is the position that a claim at now is told.
func (s *broken) shown(e entry, now time.Time) watermark.Position {
	if s.is(positionHidden) && s.expired(e, now) {
		return none
	}
	if s.is(zeroIsNone) && strings.Trim(e.position.Sequence, "0") == "" {
		return none
	}
	return e.position
}

func (s *broken) Advance(ctx context.Context, r watermark.AdvanceRequest) error {
	if err := s.begin(ctx, r); err != nil {
		return err
	}
	defer s.mu.Unlock()
	key := s.key(r.Key)
	e, known := s.entries[key]
	mine := known && (e.owner == r.Owner || s.is(advanceAnyOwner) || s.is(noneChecksNothing) && r.To.IsZero())
	order := s.compare(r.To, e.position)
	released := e.lease.IsZero()
	switch {
	case !known && s.is(advanceCreates):
	case known && !mine && s.is(otherReleaseDone) && r.Release && order <= 0:
		return nil
	case !mine:
		if s.is(advanceRefusedKeep) && known {
			e.expiry = r.Expiry
			s.entries[key] = e
		}
		return idempotency.ErrClaimLost
	case released && s.is(advanceAnyRelease):
	case released && order <= 0 && s.is(ownReleaseWrites):
	case released && order <= 0 && !s.is(ownReleaseUnknown):
		return nil
	case released, s.expired(e, r.Now) && !s.is(advanceExpired), s.is(advanceChecksLease) && e.lease.Before(r.Now):
		return idempotency.ErrClaimLost
	case order < 0 && s.is(backRefused) && !r.To.IsZero(), order == 0 && s.is(sameRefused):
		return idempotency.ErrClaimLost
	case order < 0 && !r.To.IsZero() && (!r.Release && !s.is(backChanges) && !s.is(positionBack) || s.is(backNoRelease)):
		return nil
	}
	s.pause(advanceNotAtomic)
	if order > 0 || s.is(positionBack) && !r.To.IsZero() || s.is(noneForgets) && r.To.IsZero() {
		e.position = r.To
	}
	if !s.is(moveKeepsExpiry) && !(s.is(noneKeepsExpiry) && r.To.IsZero()) {
		e.expiry = s.seconds(r.Expiry)
	}
	switch {
	case !r.Release, s.is(releaseKept):
	case s.is(releaseSkewed):
		e.lease = r.Now
	default:
		e.lease = time.Time{}
	}
	s.entries[key] = e
	return nil
}

func (s *broken) Rewind(ctx context.Context, r watermark.RewindRequest) error {
	if err := s.begin(ctx, r); err != nil {
		return err
	}
	defer s.mu.Unlock()
	key := s.key(r.Key)
	old, known := s.entries[key]
	e := entry{position: r.To, expiry: s.seconds(r.Expiry)}
	switch {
	case s.is(rewindChecks) && !old.lease.IsZero() && r.Now.Before(old.lease):
		return nil
	case s.is(rewindForward) && r.To.Compare(old.position) > 0, s.is(rewindNoneIgnored) && r.To.IsZero():
		e.position = old.position
	case s.is(rewindNeedsEntry) && !known:
		return nil
	case s.is(rewindKeepsOwner):
		e.owner, e.lease = old.owner, old.lease
	case s.is(rewindKeepsRelease):
		e.owner = old.owner
	case s.is(rewindKeepsExpiry) && known:
		e.expiry = old.expiry
	}
	s.entries[key] = e
	return nil
}

func (s *broken) free(e entry, r watermark.ClaimRequest) bool {
	if e.lease.IsZero() || s.is(expiryEndsClaim) && s.expired(e, r.Now) {
		return true
	}
	limit, now := e.lease.UnixMilli()+r.Skew.Milliseconds(), r.Now.UnixMilli()
	switch s.fault {
	case leaseEarly:
		return limit <= now
	case leaseLate:
		return limit+1 < now
	case leaseNoSkew:
		return e.lease.UnixMilli() < now
	case leaseExact:
		return e.lease.Add(r.Skew).Before(r.Now)
	}
	return limit < now
}

func (s *broken) seconds(t time.Time) time.Time {
	if s.is(expiryExact) {
		return t
	}
	return time.Unix(t.Unix(), 0)
}

func (s *broken) expired(e entry, now time.Time) bool {
	switch s.fault {
	case expiryEarly:
		return e.expiry.Unix() <= now.Unix()
	case expiryLate:
		return e.expiry.Unix()+1 < now.Unix()
	case expiryExact:
		return e.expiry.Before(now)
	}
	return e.expiry.Unix() < now.Unix()
}

func (s *broken) compare(p, q watermark.Position) int {
	if p.IsZero() || q.IsZero() {
		return p.Compare(q)
	}
	switch s.fault {
	case orderText:
		return strings.Compare(p.String(), q.String())
	case orderZeros:
		if len(p.Sequence) != len(q.Sequence) {
			return len(p.Sequence) - len(q.Sequence)
		}
	case orderFloat:
		a, _ := strconv.ParseFloat(p.Sequence, 64)
		b, _ := strconv.ParseFloat(q.Sequence, 64)
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return p.Sub - q.Sub
	case orderNoSub:
		p.Sub, q.Sub = 0, 0
	case orderSubText:
		if strings.TrimLeft(p.Sequence, "0") == strings.TrimLeft(q.Sequence, "0") {
			return strings.Compare(strconv.Itoa(p.Sub), strconv.Itoa(q.Sub))
		}
	}
	return p.Compare(q)
}

func TestStoreWithoutFault(t *testing.T) {
	Test(t, func(testing.TB) watermark.Store { return newBroken(noFault) })
}

// faults says for each fault which check is there to notice it, and whether random requests notice it too.
var faults = []struct {
	fault  fault
	check  string
	random bool
}{
	{twoWinners, "winner/64 claims of an absent shard", false},
	{advanceNotAtomic, "winner/claim against advance", false},
	{advanceAnyOwner, "owner/advance", true},
	{advanceCreates, "owner/advance when absent", true},
	{advanceAnyRelease, "owner/advance after release", true},
	{advanceChecksLease, "lease/advance after the lease", true},
	{advanceRefusedKeep, "owner/advance", true},
	{claimRefusedKeep, "owner/refused claim changes nothing", true},
	{noneChecksNothing, "owner/advance after takeover", true},
	{ownClaimUnknown, "own write/claim", true},
	{ownClaimReleased, "own write/claim after release", true},
	{ownClaimWrites, "own write/claim", true},
	{ownReleaseUnknown, "own write/advance and release", true},
	{ownReleaseWrites, "own write/advance and release", true},
	{otherReleaseDone, "own write/release after another claim", true},
	{leaseEarly, "lease/both sides of the limit", true},
	{leaseLate, "lease/both sides of the limit", true},
	{leaseNoSkew, "lease/both sides of the limit", true},
	{leaseExact, "lease/whole milliseconds", false},
	{leaseSeconds, "lease/both sides of the limit", true},
	{leaseShort, "lease/longer than any invocation", false},
	{releaseKept, "lease/released", true},
	{releaseSkewed, "lease/released", true},
	{expiryEarly, "expiry/both sides of the limit", true},
	{expiryLate, "expiry/both sides of the limit", true},
	{expiryExact, "expiry/whole seconds", true},
	{expiryNever, "expiry/both sides of the limit", true},
	{expiryEndsClaim, "expiry/of a live claim", false},
	{claimKeepsExpiry, "expiry/set by claim", true},
	{moveKeepsExpiry, "expiry/both sides of the limit", true},
	{noneKeepsExpiry, "expiry/both sides of the limit", false},
	{advanceExpired, "expiry/advance", true},
	{positionHidden, "expiry/starts anew", true},
	{orderText, "position/order", true},
	{orderZeros, "position/order", false},
	{orderFloat, "position/order", false},
	{orderNoSub, "position/order", true},
	{orderSubText, "position/order", true},
	{positionBack, "position/never back", true},
	{backRefused, "position/never back", true},
	{backNoRelease, "position/never back", true},
	{backChanges, "position/never back", false},
	{sameRefused, "position/never back", true},
	{claimForgets, "position/kept", true},
	{zeroIsNone, "position/none", true},
	{noneForgets, "position/kept", true},
	{rewindChecks, "rewind/during a claim", true},
	{rewindForward, "rewind/back, forward and to nothing", true},
	{rewindNoneIgnored, "rewind/back, forward and to nothing", true},
	{rewindNeedsEntry, "rewind/absent", true},
	{rewindKeepsOwner, "rewind/during a claim", true},
	{rewindKeepsRelease, "rewind/during a claim", true},
	{rewindKeepsExpiry, "rewind/expiry", true},
	{freeWrong, "lease/both sides of the limit", false},
	{wrongTaken, "requests/wrong", false},
	{wrongIsLost, "requests/wrong", false},
	{contextLost, "requests/context done", false},
	{keysFolded, "keys/odd", false},
	{keysCut, "keys/odd", false},
	{keysTrimmed, "keys/odd", false},
	{sharedPosition, "keys/odd", false},
}

// TestBrokenStores proves that each check notices what it is there for, and that none is idle.
func TestBrokenStores(t *testing.T) {
	noticed := make(map[string]bool)
	for _, test := range faults {
		t.Run(string(test.fault), func(t *testing.T) {
			failed := make(map[string]bool)
			for _, c := range checks {
				if c.name == randomCheck && !test.random {
					continue // it takes longer than all others
				}
				if fails(t, c, test.fault) {
					failed[c.name], noticed[c.name] = true, true
				}
			}
			if !failed[test.check] {
				t.Errorf("%q passes, and is there to notice this; it is noticed by %v", test.check, failed)
			}
			if test.random && !failed[randomCheck] {
				t.Errorf("random requests do not notice this")
			}
		})
	}
	for _, c := range checks {
		if !noticed[c.name] {
			t.Errorf("no broken store fails %q", c.name)
		}
	}
}

// fails runs a check on a goroutine of its own, since FailNow ends the one that calls it.
func fails(t testing.TB, c check, f fault) bool {
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.run(r, newSuite(t, newBroken(f)))
	}()
	<-ended
	return r.failed.Load()
}

// recorder is a testing.TB that keeps a failure to itself.
type recorder struct {
	testing.TB
	failed atomic.Bool
}

func (r *recorder) Failed() bool          { return r.failed.Load() }
func (r *recorder) Fail()                 { r.failed.Store(true) }
func (r *recorder) Log(...any)            {}
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) Error(...any)          { r.Fail() }
func (r *recorder) Errorf(string, ...any) { r.Fail() }
func (r *recorder) Fatal(...any)          { r.FailNow() }
func (r *recorder) Fatalf(string, ...any) { r.FailNow() }

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}
