package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
)

// modelRandom sends random requests for one key, from several owners, with time moving on, and compares each answer with
// the model's. Requests also arrive twice, at once or long after they were sent, with the time at which they were sent.
func modelRandom(t testing.TB, s *suite) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			suite:  s,
			model:  model{count: rapid.Bool().Draw(t, "count attempts")},
			key:    newKey(),
			owners: []string{newOwner()},
			now:    s.start,
			skew:   rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "skew"),
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			m.step(t)
		}
		// What the last requests have left shows in one more claim.
		m.send(t, m.claim(t))
	})
}

// machine draws requests and sends them to the store and to the model.
type machine struct {
	*suite
	model  model
	key    string
	owners []string // all that ever asked for the key, a stranger first
	now    time.Time
	skew   time.Duration
	sent   []any
}

func (m *machine) step(t *rapid.T) {
	switch rapid.SampledFrom([]string{"claim", "complete", "release", "renew", "again", "wait", "wait"}).Draw(t, "step") {
	case "claim":
		m.send(t, m.claim(t))
	case "complete":
		var data []byte
		if rapid.Bool().Draw(t, "with result") {
			data = fmt.Appendf(nil, `{"result":%d}`, len(m.sent))
		}
		m.send(t, idempotency.CompleteRequest{
			Key: m.key, Owner: m.owner(t), Now: m.now, Data: data,
			Expiry: m.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "expiry")) * time.Second),
		})
	case "release":
		m.send(t, idempotency.ReleaseRequest{
			Key: m.key, Owner: m.owner(t), Now: m.now,
			CountAttempts: m.model.count, Unstarted: rapid.Bool().Draw(t, "unstarted"),
		})
	case "renew":
		lease, expiry := m.leaseAndExpiry(t)
		owner := m.owner(t)
		m.send(t, idempotency.RenewRequest{
			Key: m.key, Owner: owner, NewOwner: m.newOwner(), Now: m.now, Lease: lease, Expiry: expiry,
		})
	case "again":
		if len(m.sent) > 0 {
			m.compare(t, m.sent[rapid.IntRange(0, len(m.sent)-1).Draw(t, "which")])
		}
	case "wait":
		m.wait(t)
	}
}

func (m *machine) claim(t *rapid.T) idempotency.ClaimRequest {
	lease, expiry := m.leaseAndExpiry(t)
	return idempotency.ClaimRequest{
		Key: m.key, Owner: m.newOwner(), Fingerprint: rapid.SampledFrom([]string{"", "f1", "f2"}).Draw(t, "fingerprint"),
		Now: m.now, Lease: lease, Expiry: expiry, Skew: m.skew, CountAttempts: m.model.count,
	}
}

func (m *machine) leaseAndExpiry(t *rapid.T) (lease, expiry time.Time) {
	lease = m.now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "lease")) * time.Millisecond)
	return lease, lease.Add(m.skew + time.Duration(rapid.IntRange(1, 20).Draw(t, "expiry"))*time.Second)
}

// owner draws an owner, mostly the one that holds the key.
func (m *machine) owner(t *rapid.T) string {
	if m.model.entry.Owner != "" && rapid.IntRange(0, 3).Draw(t, "own") > 0 {
		return m.model.entry.Owner
	}
	return rapid.SampledFrom(m.owners).Draw(t, "owner")
}

func (m *machine) newOwner() string {
	m.owners = append(m.owners, newOwner())
	return m.owners[len(m.owners)-1]
}

// wait moves time on, mostly to one side or the other of a limit.
func (m *machine) wait(t *rapid.T) {
	e := m.model.entry
	to := rapid.SampledFrom([]time.Time{
		m.now.Add(time.Millisecond), m.now.Add(time.Second),
		e.Lease.Add(m.skew), e.Lease.Add(m.skew + time.Millisecond),
		e.Expiry, e.Expiry.Add(999 * time.Millisecond), e.Expiry.Add(time.Second),
	}).Draw(t, "until")
	if to.After(m.now) {
		m.now = to
	}
}

// send sends a request to both, and now and then a second time.
func (m *machine) send(t *rapid.T, request any) {
	m.sent = append(m.sent, request)
	for range rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "times") {
		m.compare(t, request)
	}
}

func (m *machine) compare(t *rapid.T, request any) {
	switch r := request.(type) {
	case idempotency.ClaimRequest:
		if !m.model.arrives(r.Now) {
			return
		}
		got, err := m.store.Claim(m.ctx, r)
		if err != nil {
			t.Fatalf("claim at %s: %v", m.at(r.Now), err)
		}
		want := m.model.claim(r, got.Entry.Attempts)
		if got.Claimed != want.Claimed || got.TookOver != want.TookOver {
			t.Fatalf("claim at %s: claimed is %t and took over is %t, want %t and %t",
				m.at(r.Now), got.Claimed, got.TookOver, want.Claimed, want.TookOver)
		}
		m.wantEntry(t, "entry of the claim at "+m.at(r.Now), got.Entry, want.Entry)
	case idempotency.CompleteRequest:
		if m.model.arrives(r.Now) {
			m.wantOneOf(t, "complete", r.Now, m.store.Complete(m.ctx, r), m.model.complete(r))
		}
	case idempotency.ReleaseRequest:
		if m.model.arrives(r.Now) {
			m.wantOneOf(t, "release", r.Now, m.store.Release(m.ctx, r), m.model.release(r))
		}
	case idempotency.RenewRequest:
		if m.model.arrives(r.Now) {
			m.wantOneOf(t, "renew", r.Now, m.store.Renew(m.ctx, r), m.model.renew(r))
		}
	}
}

func (m *machine) wantOneOf(t *rapid.T, what string, now time.Time, got error, want []error) {
	if !slices.ContainsFunc(want, func(w error) bool { return w == nil && got == nil || w != nil && errors.Is(got, w) }) {
		t.Fatalf("%s at %s: error is %v, want one of %v", what, m.at(now), got, want)
	}
}

// model is one key as the rules want it. The methods return the errors of which a store may return any.
type model struct {
	entry idempotency.Entry
	count bool
	// settled is when a request last came upon an expired entry. A store may have deleted it then, or later, so a request
	// that was sent before and arrives after has no certain answer.
	settled time.Time
}

// arrives reports whether a request that was sent at now has a certain answer.
func (m *model) arrives(now time.Time) bool {
	if now.Before(m.settled) {
		return false
	}
	if m.expired(now) {
		m.settled = now
	}
	return true
}

func (m *model) expired(now time.Time) bool {
	return m.entry.Status != idempotency.Absent && m.entry.Expiry.Unix() < now.Unix()
}

func (m *model) free(r idempotency.ClaimRequest) bool {
	switch m.entry.Status {
	case idempotency.InProgress:
		return m.entry.Lease.UnixMilli()+r.Skew.Milliseconds() < r.Now.UnixMilli()
	case idempotency.Completed:
		return m.expired(r.Now)
	default:
		return true
	}
}

// claim returns the answer to a claim. Its attempts may be those that the store answered: the count of an expired entry
// lives until the entry is deleted.
func (m *model) claim(r idempotency.ClaimRequest, attempts int) idempotency.ClaimResult {
	before := m.entry
	if !m.free(r) {
		own := before.Status == idempotency.InProgress && before.Owner == r.Owner
		return idempotency.ClaimResult{Claimed: own, Entry: before}
	}
	forgotten := m.expired(r.Now) && attempts == 1
	m.entry = inProgress(r)
	if m.count {
		m.entry.Attempts = 1
		if !forgotten {
			m.entry.Attempts += before.Attempts
		}
	}
	return idempotency.ClaimResult{
		Claimed:  true,
		TookOver: before.Status == idempotency.InProgress && before.Owner != "",
		Entry:    m.entry,
	}
}

func (m *model) complete(r idempotency.CompleteRequest) []error {
	expired := m.expired(r.Now)
	switch {
	case m.entry.Status == idempotency.Absent || m.entry.Owner != r.Owner:
		return []error{idempotency.ErrClaimLost}
	case m.entry.Status == idempotency.Completed && expired:
		return []error{nil, idempotency.ErrClaimLost}
	case m.entry.Status == idempotency.Completed:
		return []error{nil}
	case expired:
		return []error{idempotency.ErrClaimLost}
	}
	m.entry = completed(idempotency.ClaimRequest{Fingerprint: m.entry.Fingerprint}, r)
	return []error{nil}
}

func (m *model) release(r idempotency.ReleaseRequest) []error {
	expired := m.expired(r.Now)
	var refused error
	switch {
	case m.entry.Status == idempotency.Absent || m.entry.Owner == "":
		return []error{nil}
	case m.entry.Owner != r.Owner:
		refused = idempotency.ErrClaimLost
	case m.entry.Status == idempotency.Completed:
		refused = idempotency.ErrAlreadyCompleted
	}
	if refused != nil && expired {
		return []error{nil, refused}
	}
	if refused != nil {
		return []error{refused}
	}
	if !r.CountAttempts {
		m.entry = idempotency.Entry{}
		return []error{nil}
	}
	m.entry.Owner, m.entry.Lease = "", time.UnixMilli(0)
	if r.Unstarted {
		m.entry.Attempts--
	}
	return []error{nil}
}

func (m *model) renew(r idempotency.RenewRequest) []error {
	expired := m.expired(r.Now)
	switch {
	case m.entry.Status == idempotency.Absent || m.entry.Owner != r.Owner && m.entry.Owner != r.NewOwner:
		return []error{idempotency.ErrClaimLost}
	case m.entry.Status == idempotency.Completed && expired:
		return []error{idempotency.ErrAlreadyCompleted, idempotency.ErrClaimLost}
	case m.entry.Status == idempotency.Completed:
		return []error{idempotency.ErrAlreadyCompleted}
	case m.entry.Owner == r.NewOwner && expired:
		return []error{nil, idempotency.ErrClaimLost}
	case m.entry.Owner == r.NewOwner:
		return []error{nil}
	case expired:
		return []error{idempotency.ErrClaimLost}
	}
	m.entry.Owner = r.NewOwner
	m.entry.Lease, m.entry.Expiry = time.UnixMilli(r.Lease.UnixMilli()), time.Unix(r.Expiry.Unix(), 0)
	return []error{nil}
}
