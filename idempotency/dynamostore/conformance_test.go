package dynamostore_test

import (
	"context"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// TestConformance runs the conformance tests, which take long over the wire, for what layouts can have, and over the methods
// for many where a table has a sort key. TestClientOptionsConformance is the same for the default layout. How the methods for
// many differ by layout is TestBulkItems's and TestBulkRequests's.
func TestConformance(t *testing.T) {
	for _, l := range layouts() {
		switch l.name {
		case "default", "native data":
			continue
		case "sort key by namespace and odd names":
			l.options.NativeData = true
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, dynamotest.Client(t), l.options)
			var store idempotency.Store
			switch l.name {
			case "sort key and reserved words":
				store = p
			case "mayfly":
				slow := slowMotion{store: p, anchor: time.Now().Truncate(time.Second)}
				store = single{slow, slow, p}
			default:
				store = single{p, p, p}
			}
			storetest.Test(t, func(testing.TB) idempotency.Store { return store })
		})
	}
}

// single is a store without its methods for many.
type single struct {
	idempotency.Store
	storetest.Planter
	storetest.ValueKeeper
}

// slowMotion is a store whose caller's milliseconds are seconds to the store below. The suite wants exact milliseconds,
// and a store that keeps seconds is exact in those.
type slowMotion struct {
	store  planter
	anchor time.Time // a whole second, which is the same on both sides
}

const slowness = int64(time.Second / time.Millisecond)

// moment returns the moment of a time in whole milliseconds. The epoch is where it was: it means something.
func (m slowMotion) moment(t time.Time) time.Time {
	if t.IsZero() || t.UnixMilli() == 0 {
		return t
	}
	return time.Unix(m.anchor.Unix()+t.UnixMilli()-m.anchor.UnixMilli(), 0)
}

func (m slowMotion) momentBack(t time.Time) time.Time {
	if t.IsZero() || t.UnixMilli() == 0 {
		return t
	}
	return time.UnixMilli(m.anchor.UnixMilli() + t.Unix() - m.anchor.Unix()).UTC()
}

// expiry returns an expiry, whose fraction of a second does not count, as the last second of the moments in its second.
func (m slowMotion) expiry(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return m.moment(time.Unix(t.Unix()+1, 0)).Add(-time.Second)
}

func (m slowMotion) expiryBack(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return m.momentBack(t.Add(time.Second)).Add(-time.Second)
}

func (m slowMotion) claim(r idempotency.ClaimRequest) idempotency.ClaimRequest {
	r.Now, r.Lease, r.Expiry = m.moment(r.Now), m.moment(r.Lease), m.expiry(r.Expiry)
	r.Skew *= time.Duration(slowness)
	return r
}

func (m slowMotion) claimed(r idempotency.ClaimResult) idempotency.ClaimResult {
	r.Entry.Lease, r.Entry.Expiry = m.momentBack(r.Entry.Lease), m.expiryBack(r.Entry.Expiry)
	return r
}

func (m slowMotion) completion(r idempotency.CompleteRequest) idempotency.CompleteRequest {
	r.Now, r.Expiry = m.moment(r.Now), m.expiry(r.Expiry)
	return r
}

func (m slowMotion) release(r idempotency.ReleaseRequest) idempotency.ReleaseRequest {
	r.Now = m.moment(r.Now)
	return r
}

func (m slowMotion) renewal(r idempotency.RenewRequest) idempotency.RenewRequest {
	r.Now, r.Lease, r.Expiry = m.moment(r.Now), m.moment(r.Lease), m.expiry(r.Expiry)
	return r
}

func (m slowMotion) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	result, err := m.store.Claim(ctx, m.claim(r))
	return m.claimed(result), err
}

func (m slowMotion) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	return m.store.Complete(ctx, m.completion(r))
}

func (m slowMotion) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	return m.store.Release(ctx, m.release(r))
}

func (m slowMotion) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return m.store.Renew(ctx, m.renewal(r))
}

// Plant implements storetest.Planter.
func (m slowMotion) Plant(t testing.TB, key string, e idempotency.Entry) {
	t.Helper()
	e.Lease, e.Expiry = m.moment(e.Lease), m.expiry(e.Expiry)
	m.store.Plant(t, key, e)
}
