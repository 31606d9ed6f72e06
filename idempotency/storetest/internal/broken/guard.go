package broken

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/oncekit/oncekit/idempotency"
)

// Guard is a guard that breaks the rule that its fault names, and no other.
type Guard struct {
	fault     Fault
	namespace string
	store     idempotency.Store
	options   idempotency.Options
	owner     string
	claims    atomic.Int64
}

// NewGuard returns a guard with a fault.
func NewGuard(fault Fault, namespace string, store idempotency.Store, options idempotency.Options) *Guard {
	g := &Guard{fault: fault, namespace: namespace, store: store, options: options, owner: rand.Text()}
	if g.is(NamespaceDerived) {
		g.namespace = "process-" + rand.Text()
	}
	if g.options.Skew == 0 || g.is(SkewUnheeded) {
		g.options.Skew = time.Second
	}
	g.options.Skew = max(g.options.Skew, 0)
	return g
}

func (g *Guard) is(f Fault) bool { return g.fault == f }

type work = func(context.Context) ([]byte, error)

type invocationKey struct{}

// deadline returns when the invocation ends.
func (g *Guard) deadline(ctx context.Context) (time.Time, bool) {
	if end, ok := ctx.Value(invocationKey{}).(time.Time); ok && !g.is(LeaseOfContext) {
		return end, true
	}
	return ctx.Deadline()
}

// Do does work under a key.
func (g *Guard) Do(ctx context.Context, key, fingerprint string, fn work) (data []byte, replayed bool, err error) {
	if key == "" && !g.is(MissingShared) {
		unprotected := g.options.MissingKey == idempotency.MissingKeyRunsUnprotected && !g.is(MissingOptionUnheeded)
		if unprotected || g.is(MissingRuns) {
			data, err = fn(ctx)
			return data, false, err
		}
		return nil, false, idempotency.ErrKeyMissing
	}
	if err := ctx.Err(); err != nil && !g.is(EndedRuns) {
		return nil, false, err
	}
	r := g.request(ctx, key, fingerprint)
	if g.is(EndedRuns) && ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
		r.Lease = r.Now.Add(time.Minute)
	}
	got, err := g.store.Claim(ctx, r)
	if err != nil {
		return g.undecided(ctx, r, err, fn)
	}
	if !got.Claimed {
		return g.refused(ctx, r, got.Entry, fn)
	}
	if late := !time.Now().Before(r.Lease) || ctx.Err() != nil; late && !g.is(LateReplyRuns) {
		if !g.is(LateReplyKept) {
			_ = g.release(ctx, r)
		}
		return nil, false, idempotency.ErrLeaseTooShort
	}
	return g.run(ctx, r, fn)
}

func (g *Guard) request(ctx context.Context, key, fingerprint string) idempotency.ClaimRequest {
	now := time.Now()
	lease := now.Add(time.Minute)
	if g.is(LeaseNoDefault) {
		lease = now.Add(time.Hour)
	}
	end, limited := g.deadline(ctx)
	if limited && !g.is(LeaseFixed) {
		lease = end
	}
	if g.options.Lease > 0 && !g.is(LeaseOptionUnheeded) {
		lease = now.Add(g.options.Lease)
		if g.is(LeaseOptionCut) && limited && end.Before(lease) {
			lease = end
		}
	}
	lease = lease.Truncate(time.Millisecond)
	expiry := now.Add(g.expiry())
	if after := lease.Add(g.options.Skew + 2*time.Second); expiry.Before(after) && !g.is(ExpiryBeforeLease) {
		expiry = after
	}
	return idempotency.ClaimRequest{
		Key: g.key(key), Owner: g.newOwner(), Fingerprint: g.fingerprint(fingerprint),
		Now: now, Lease: lease, Expiry: expiry, Skew: g.options.Skew,
	}
}

func (g *Guard) expiry() time.Duration {
	if g.options.Expiry > 0 && !g.is(ExpiryOptionIgnored) {
		return g.options.Expiry
	}
	return time.Hour
}

func (g *Guard) newOwner() string {
	n := g.claims.Add(1)
	switch g.fault {
	case OwnerPerGuard:
		return g.owner
	case OwnerCounted:
		return fmt.Sprintf("owner-of-orders-%08d", n)
	}
	return rand.Text()
}

func (g *Guard) key(key string) string {
	const prefix = "sha256:"
	long := len(g.namespace)+1+len(key) > 1024
	switch {
	case g.is(NamespaceUnheeded):
		return "orders#" + key
	case long && g.is(LongKeysCut):
		return (g.namespace + "#" + key)[:1024]
	case long && !g.is(LongKeysVerbatim), g.is(AllKeysHashed), g.options.HashKeys && !g.is(HashIgnored),
		strings.HasPrefix(key, prefix) && !g.is(HashForged):
		sum := sha256.Sum256([]byte(key))
		key = prefix + hex.EncodeToString(sum[:])
	}
	return g.namespace + "#" + key
}

func (g *Guard) fingerprint(fingerprint string) string {
	long, text := len(fingerprint) > 1024, utf8.ValidString(fingerprint)
	switch {
	case !long && text, g.is(PrintVerbatim):
		return fingerprint
	case long && g.is(PrintCut):
		return fingerprint[:1024]
	case !text && g.is(PrintMadeText):
		return strings.ToValidUTF8(fingerprint, "?")
	}
	sum := sha256.Sum256([]byte(fingerprint))
	return hex.EncodeToString(sum[:])
}

func (g *Guard) undecided(ctx context.Context, r idempotency.ClaimRequest, err error, fn work) ([]byte, bool, error) {
	full := errors.Is(err, idempotency.ErrStoreFull)
	if !full && !g.is(UndecidedKept) {
		_ = g.release(ctx, r)
	}
	switch {
	case g.is(UndecidedRuns) && !full, g.is(FullRuns) && full:
		data, err := fn(ctx)
		return data, false, err
	case g.is(UndecidedSilent):
		return nil, true, nil
	}
	return nil, false, err
}

func (g *Guard) refused(
	ctx context.Context, r idempotency.ClaimRequest, e idempotency.Entry, fn work,
) ([]byte, bool, error) {
	if g.is(RequestsClaim) {
		_, _ = g.store.Claim(ctx, r)
	}
	running := e.Status == idempotency.InProgress
	mismatch := e.Fingerprint != "" && r.Fingerprint != "" && e.Fingerprint != r.Fingerprint
	switch {
	case mismatch && g.is(PrintMismatchRuns), running && g.is(HeldRuns):
		data, err := fn(ctx)
		return data, false, err
	case mismatch && !g.is(PrintUnheeded) && !(running && g.is(PrintUnheededRunning)):
		return nil, false, idempotency.ErrFingerprintMismatch
	case running && g.is(HeldReplays):
		return nil, true, nil
	case running:
		return nil, false, &idempotency.InProgressError{Key: r.Key, Lease: e.Lease}
	case e.Data == nil && g.is(ResultMissingRuns):
		data, err := fn(ctx)
		return data, false, err
	case e.Data == nil && g.is(ResultMissingIsNil):
		return nil, true, nil
	case e.Data == nil:
		return nil, true, idempotency.ErrResultNotStored
	}
	var data []byte
	err := json.Unmarshal(e.Data, &data)
	if g.is(ResultNilIsEmpty) && data == nil {
		data = []byte{}
	}
	return data, true, err
}

// run does the work under the claim, and settles it.
func (g *Guard) run(ctx context.Context, r idempotency.ClaimRequest, fn work) (data []byte, replayed bool, err error) {
	whole := time.Until(r.Lease)
	limit := whole - min(time.Second, whole/10)
	if g.is(WorkToTheLease) {
		limit = whole
	}
	working, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if end, ok := g.deadline(ctx); ok {
		working = context.WithValue(working, invocationKey{}, end)
	}
	if g.is(WorkUnlimited) {
		working = context.WithoutCancel(working)
	}
	if g.is(ReleaseAtDeadline) {
		defer context.AfterFunc(working, func() { _ = g.release(ctx, r) })()
	}
	if g.is(RequestsRenew) {
		renewed := r
		renewed.Owner = rand.Text()
		err := g.store.Renew(ctx, idempotency.RenewRequest{
			Key: r.Key, Owner: r.Owner, NewOwner: renewed.Owner, Now: time.Now(), Lease: r.Lease, Expiry: r.Expiry,
		})
		if err == nil {
			r = renewed
		}
	}
	settle := r
	if g.is(OwnerPerCall) {
		settle.Owner = rand.Text()
	}
	if g.is(KeyComputedNew) {
		settle.Key += "'"
	}

	returned := false
	defer func() {
		if returned {
			return
		}
		recovered := recover()
		if !(recovered != nil && g.is(PanicKept)) && !(recovered == nil && g.is(GoexitKept)) {
			_ = g.release(ctx, settle)
		}
		if recovered != nil && !g.is(PanicIsFine) {
			err = fmt.Errorf("panic: %v", recovered)
		}
	}()
	data, err = fn(working)
	returned = true
	if err != nil && !g.is(FailureCompleted) {
		return nil, false, g.failed(ctx, settle, err)
	}
	return data, false, errors.Join(err, g.finished(ctx, settle, data))
}

func (g *Guard) failed(ctx context.Context, r idempotency.ClaimRequest, err error) error {
	if g.is(FailureKept) {
		return err
	}
	var released error
	if g.is(ReleaseAttached) {
		released = g.store.Release(ctx, idempotency.ReleaseRequest{Key: r.Key, Owner: r.Owner, Now: time.Now()})
	} else {
		released = g.release(ctx, r)
	}
	switch {
	case released == nil || g.is(ReleaseErrorDropped):
		return err
	case g.is(FailureReplaced):
		return released
	case g.is(FailureSecond):
		return errors.Join(released, err)
	case g.is(LostReleased) && errors.Is(released, idempotency.ErrClaimLost):
		g.takeBack(ctx, r, func(owner string) {
			_ = g.store.Release(ctx, idempotency.ReleaseRequest{Key: r.Key, Owner: owner, Now: time.Now()})
		})
	}
	return errors.Join(err, released)
}

// takeBack does to the claim of another owner what was meant for the guard's own.
func (g *Guard) takeBack(ctx context.Context, r idempotency.ClaimRequest, do func(owner string)) {
	r.Owner, r.Now = rand.Text(), time.Now()
	r.Lease = r.Now.Add(time.Minute)
	if got, err := g.store.Claim(ctx, r); err == nil && !got.Claimed {
		do(got.Entry.Owner)
	}
}

func (g *Guard) finished(ctx context.Context, r idempotency.ClaimRequest, data []byte) error {
	encoded, err := json.Marshal(data)
	if g.is(ResultEmptyIsNil) && len(data) == 0 {
		encoded, err = []byte("null"), nil
	}
	if err != nil {
		return err
	}
	c := idempotency.CompleteRequest{
		Key: r.Key, Owner: r.Owner, Now: time.Now(), Expiry: time.Now().Add(g.expiry()), Data: encoded,
	}
	settle := ctx
	if !g.is(CompleteAttached) {
		detached, cancel := g.detach(ctx)
		defer cancel()
		settle = detached
	}
	tries := 3
	if g.is(CompletionOnce) || g.is(CompletionFinal) {
		tries = 1
	}
	for range tries {
		err = g.store.Complete(settle, c)
		if err == nil || errors.Is(err, idempotency.ErrClaimLost) || errors.Is(err, idempotency.ErrResultNotStored) {
			break
		}
	}
	switch {
	case err == nil, errors.Is(err, idempotency.ErrResultNotStored) && !g.is(ResultNotStoredFails),
		errors.Is(err, idempotency.ErrClaimLost) && g.is(LostIsFine):
		return nil
	case errors.Is(err, idempotency.ErrClaimLost) && g.is(LostCompleted):
		g.takeBack(ctx, r, func(owner string) {
			c.Owner = owner
			_ = g.store.Complete(ctx, c)
		})
		return err
	case errors.Is(err, idempotency.ErrClaimLost), errors.Is(err, idempotency.ErrResultNotStored),
		g.is(UnrecordedIsError), g.is(CompletionFinal):
		return err
	case g.is(UnrecordedReleased):
		_ = g.release(ctx, r)
	case g.options.FailUnrecorded && !g.is(UnrecordedIsFine):
		return err
	}
	return nil
}

func (g *Guard) release(ctx context.Context, r idempotency.ClaimRequest) error {
	ctx, cancel := g.detach(ctx)
	defer cancel()
	return g.store.Release(ctx, idempotency.ReleaseRequest{Key: r.Key, Owner: r.Owner, Now: time.Now()})
}

func (g *Guard) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := 5 * time.Second
	if end, ok := g.deadline(ctx); ok {
		limit = time.Until(end)
		if !g.is(SettleAtDeadline) {
			limit = max(limit, 2*time.Second)
		}
	}
	ctx = context.WithoutCancel(ctx)
	if g.is(SettleUnbounded) {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}
