package idempotency

import (
	"context"
	"time"
)

// How long a completion or release may take where the invocation's deadline does not say.
const (
	settleFloor = 2 * time.Second // for those that come late, or after the deadline
	settleLimit = 5 * time.Second // where there is no deadline
)

type (
	claimKey    struct{}
	deadlineKey struct{}
)

// Info is what guarded work can know of its claim.
type Info struct {
	// Namespace is that of the guard. Key is the key within it: two guards may use the same one.
	Namespace, Key string
	// Owner is the token of the claim: unique, and so a fencing token for what checks equality.
	Owner string
	// Attempt is the number of this attempt, from 1, or 0 if nobody counts.
	Attempt int
	// Lease is the end of the claim's lease. The work's context ends a little before it. With Options.ReadThenMark there is
	// no claim, and it is the end of the invocation, or zero where there is none.
	Lease time.Time

	now func() time.Time
}

// LeaseLeft returns how much of the lease is left.
func (i Info) LeaseLeft() time.Duration {
	if i.now == nil || i.Lease.IsZero() {
		return 0
	}
	return i.Lease.Sub(i.now())
}

// FromContext returns what the innermost guarded work that ctx belongs to can know of its claim, and whether there is
// any. Work that runs unprotected has none.
func FromContext(ctx context.Context) (Info, bool) {
	c, ok := ctx.Value(claimKey{}).(*Claim)
	if !ok || c.key == "" {
		return Info{}, false
	}
	return Info{Namespace: c.guard.namespace, Key: c.request.Key, Owner: c.owner, Attempt: c.attempt, Lease: c.lease, now: c.guard.now}, true
}

// claimContext is a context with a claim. It is part of the claim, so that it costs no allocation.
type claimContext struct {
	context.Context
	claim *Claim
}

func (c *claimContext) Value(key any) any {
	if _, ok := key.(claimKey); ok {
		return c.claim
	}
	return c.Context.Value(key)
}

// Context returns ctx with the claim in it, for FromContext. It does not limit it to the claim's Deadline. It is called
// once for a claim: a second call changes what the first one returned.
func (c *Claim) Context(ctx context.Context) context.Context {
	c.context = claimContext{ctx, c}
	return &c.context
}

// WithInvocationDeadline tells guarded work in ctx when the invocation really ends, since the contexts of handlers end
// before that, and a lease must not. The sources do it; it is for whoever cuts contexts short in another place.
func WithInvocationDeadline(ctx context.Context, deadline time.Time) context.Context {
	return context.WithValue(ctx, deadlineKey{}, deadline)
}

func invocationDeadline(ctx context.Context) (time.Time, bool) {
	if deadline, ok := ctx.Value(deadlineKey{}).(time.Time); ok {
		return deadline, true
	}
	return ctx.Deadline()
}

// Detach returns a context to complete or release a claim with: it has the values of ctx, but does not end when ctx
// does. It ends at the deadline of the invocation, but not before two seconds from now, and in five seconds where there
// is no deadline. Do and the sources use it; it is for callers of Guard.Claim.
func Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := settleLimit
	if deadline, ok := invocationDeadline(ctx); ok {
		limit = max(time.Until(deadline), settleFloor)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
