package watermarktest

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

// randomRequests sends random requests for one shard, from several owners, with time moving on, and compares each answer
// with that of a MemoryStore. Requests also arrive twice, at once or long after
// they were sent, with the time at which they were sent.
func randomRequests(t reporter, s *suite) {
	tb, ok := t.(testing.TB)
	if !ok {
		t.Fatalf("the check needs a testing.TB")
	}
	rapid.Check(tb, func(t *rapid.T) {
		m := &machine{suite: s, model: watermark.NewMemoryStore(), key: newKey(), owners: []string{newOwner()}, now: s.start}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			m.step(t)
		}
		m.send(t, m.claim(t)) // shows what the last requests have left
	})
}

// machine draws requests and sends them to the store and to the model.
type machine struct {
	*suite
	model  *watermark.MemoryStore
	key    string
	owners []string // all that ever asked for the shard, a stranger first
	now    time.Time
	limits []time.Time // at which something may change
	sent   []any
}

func (m *machine) step(t *rapid.T) {
	switch rapid.SampledFrom([]string{"claim", "advance", "advance", "rewind", "again", "wait", "wait"}).Draw(t, "step") {
	case "claim":
		m.send(t, m.claim(t))
	case "advance":
		m.send(t, watermark.AdvanceRequest{
			Key: m.key, Owner: m.owner(t), Now: m.now, To: position(t), Expiry: m.limit(t, "expiry", time.Second, 30),
			Release: rapid.Bool().Draw(t, "release"),
		})
	case "rewind":
		m.send(t, watermark.RewindRequest{
			Key: m.key, Now: m.now, To: position(t), Expiry: m.limit(t, "expiry", time.Second, 30),
		})
	case "again":
		if len(m.sent) > 0 {
			m.deliver(t, m.sent[rapid.IntRange(0, len(m.sent)-1).Draw(t, "which")])
		}
	case "wait":
		to := m.now.Add(time.Millisecond)
		if len(m.limits) > 0 {
			to = rapid.SampledFrom(m.limits).Draw(t, "limit").Add(
				rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second}).Draw(t, "beyond"))
		}
		if to.After(m.now) {
			m.now = to
		}
	}
}

func (m *machine) claim(t *rapid.T) watermark.ClaimRequest {
	m.owners = append(m.owners, newOwner())
	r := watermark.ClaimRequest{
		Key: m.key, Owner: m.owners[len(m.owners)-1], Now: m.now,
		Skew:  rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "skew"),
		Lease: m.limit(t, "lease", time.Millisecond, 5000),
	}
	r.Expiry = r.Lease.Add(r.Skew + time.Duration(rapid.IntRange(1, 20).Draw(t, "expiry"))*time.Second)
	m.limits = append(m.limits, r.Lease.Add(r.Skew), r.Expiry)
	return r
}

// owner draws an owner, mostly the last that asked.
func (m *machine) owner(t *rapid.T) string {
	if rapid.IntRange(0, 3).Draw(t, "own") > 0 {
		return m.owners[len(m.owners)-1]
	}
	return rapid.SampledFrom(m.owners).Draw(t, "owner")
}

// limit draws a time at which something is to end, and remembers it.
func (m *machine) limit(t *rapid.T, label string, unit time.Duration, most int) time.Time {
	at := m.now.Add(time.Duration(rapid.IntRange(1, most).Draw(t, label)) * unit)
	m.limits = append(m.limits, at)
	return at
}

func position(t *rapid.T) watermark.Position {
	return rapid.SampledFrom([]watermark.Position{
		none, {Sequence: "0"}, whole("9"), {Sequence: "10"}, {Sequence: "10", Sub: 2}, {Sequence: "010", Sub: 10}, whole("10"),
		whole("100000000000000000000000000000000000000000000000000000000"),
	}).Draw(t, "position")
}

func (m *machine) send(t *rapid.T, r any) {
	m.sent = append(m.sent, r)
	m.deliver(t, r)
}

func (m *machine) deliver(t *rapid.T, request any) {
	var got, want answer
	switch r := request.(type) {
	case watermark.ClaimRequest:
		got.position, got.err = m.store.Claim(m.ctx, r)
		want.position, want.err = m.model.Claim(m.ctx, r)
	case watermark.AdvanceRequest:
		got.err, want.err = m.store.Advance(m.ctx, r), m.model.Advance(m.ctx, r)
	case watermark.RewindRequest:
		got.err, want.err = m.store.Rewind(m.ctx, r), m.model.Rewind(m.ctx, r)
	}
	if got.position.Compare(want.position) != 0 || got.decision() != want.decision() {
		t.Fatalf("%T %+v: position %q and %s, want position %q and %s",
			request, request, got.position, got.decision(), want.position, want.decision())
	}
}

type answer struct {
	position watermark.Position
	err      error
}

// decision says what the error says that counts.
func (a answer) decision() string {
	held, ok := errors.AsType[*idempotency.InProgressError](a.err)
	switch {
	case a.err == nil:
		return "no error"
	case ok:
		return "held until " + held.Lease.UTC().Format(time.RFC3339Nano)
	case errors.Is(a.err, idempotency.ErrClaimLost):
		return "claim lost"
	default:
		return a.err.Error()
	}
}
