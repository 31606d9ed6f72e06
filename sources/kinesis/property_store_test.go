package kinesis_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// ledgerStore tells the ledger of the transitions that were made.
type ledgerStore struct {
	idempotency.Store
	*ledger
}

func (s ledgerStore) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, err := s.Store.Claim(ctx, r)
	e := s.of(r.Key)
	if err == nil && result.Claimed {
		e.owner, e.lease = r.Owner, r.Lease
		e.claims++
		s.tell("%s is claimed until %v", e.name, r.Lease)
	}
	return result, err
}

func (s ledgerStore) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Store.Complete(ctx, r)
	e := s.of(r.Key)
	s.tell("%s is completed: %v", e.name, err)
	if err != nil {
		return err
	}
	run := e.runOf(r.Owner)
	switch {
	case run != nil && run.succeeded:
		run.completed = true
	case len(e.sunkIn) == 0:
		s.fault("%s is completed without a success", e.name)
	}
	e.owner, e.completed, e.expiry = "", true, r.Expiry
	return nil
}

func (s ledgerStore) Release(ctx context.Context, r idempotency.ReleaseRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Store.Release(ctx, r)
	e := s.of(r.Key)
	s.tell("%s is released: %v", e.name, err)
	if run := e.runOf(r.Owner); run != nil && run.succeeded {
		s.fault("%s is released after a success", e.name)
	}
	if err == nil && e.owner == r.Owner {
		e.owner = ""
		if r.Unstarted {
			e.claims--
		}
	}
	return err
}

func (s ledgerStore) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Store.Renew(ctx, r)
	e := s.of(r.Key)
	s.tell("%s is renewed until %v: %v", e.name, r.Lease, err)
	if e.runOf(r.Owner) != nil {
		s.fault("%s is renewed after it was started", e.name)
	}
	if err == nil {
		e.owner, e.lease = r.NewOwner, r.Lease
	}
	return err
}

// of returns the entry of a key. The caller holds mu.
func (l *ledger) of(key string) *ledgerEntry {
	e := l.named[key]
	if e == nil {
		l.fault("key %q is that of no record", key)
		return &ledgerEntry{}
	}
	return e
}

func (e *ledgerEntry) runOf(owner string) *ledgerRun {
	for _, r := range e.runs {
		if r.owner == owner {
			return r
		}
	}
	return nil
}

// ledgerWatermarks are the watermarks of a scenario, as calls that take part in crashes and faults.
type ledgerWatermarks struct {
	watermark.Store
	*ledger
}

func (s ledgerWatermarks) Claim(ctx context.Context, r watermark.ClaimRequest) (p watermark.Position, err error) {
	err = s.stream.Call(ctx, "Claim", r.Key, func() error {
		p, err = s.Store.Claim(ctx, r)
		return err
	})
	return p, err
}

// Advance moves a watermark, which must not pass a record that is not finished.
func (s ledgerWatermarks) Advance(ctx context.Context, r watermark.AdvanceRequest) error {
	in, _ := ctx.Value(ledgerEventKey{}).(*ledgerEvent)
	s.mu.Lock()
	in.unsure = true // until the reply is here
	s.mu.Unlock()
	err := s.stream.Call(ctx, "Advance", r.Key, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.Store.Advance(ctx, r); err != nil {
			return err
		}
		s.pass(r, in)
		return nil
	})
	if err == nil {
		s.mu.Lock()
		in.unsure = false
		s.mu.Unlock()
	}
	return err
}

// pass notes that the watermark is past everything up to the position. The caller holds mu.
func (l *ledger) pass(r watermark.AdvanceRequest, in *ledgerEvent) {
	var passed []*ledgerEntry
	last := 0
	for _, e := range l.entries {
		if watermark.Key("ledger", l.stream.ARN(), e.shard) != r.Key {
			continue
		}
		passed = append(passed, e)
		if e.sequence == r.To.Sequence && e.sub <= r.To.Sub {
			last = len(passed)
		}
	}
	l.tell("watermark is at %v", r.To)
	for _, e := range passed[:last] {
		if !l.finished(e, in) {
			l.fault("the watermark passes %s, which is not finished", e.name)
		}
		e.passed = true
	}
}

var errThrottled = errors.New("throttled")

// storeFault is the fault of a store call. Some last, so that trying again does not help.
func (l *ledger) storeFault(s *streamScenario) func(lambdatest.Point) lambdatest.Fault {
	strikes := lambdatest.Randomly(s.seed+1, s.storeFaults)
	type call struct{ name, key string }
	type outage struct {
		lambdatest.Fault
		end time.Time
	}
	outages := map[call]outage{}
	left := s.maxStoreFaults // so that a batch in which something must fail does not fail for ever
	return func(p lambdatest.Point) lambdatest.Fault {
		struck := strikes(p)
		l.mu.Lock()
		defer l.mu.Unlock()
		now, at := time.Now(), call{p.Name, p.Key}
		o, ok := outages[at]
		struck = struck && left > 0
		if !struck && (!ok || now.After(o.end)) {
			return lambdatest.Fault{}
		}
		if struck {
			left--
			kind := func(of string) float64 { return lambdatest.Seed(s.seed).Fraction(of, p.Name, p.Key, now.String()) }
			o = outage{end: now}
			switch fault := kind("fault"); {
			case fault < .3:
				o.Err = errThrottled
			case fault < .6:
				o.Err, o.ReplyLost = errThrottled, true
			case fault < .8:
				o.Latency = 300 * time.Millisecond
			default:
				o.Latency = 6 * time.Second
			}
			if n := len(p.Keys); n > 1 && kind("part") < .5 {
				o.Part = 1 + int(kind("part of")*float64(n-1))
			}
			if kind("outage") < .5 {
				o.end = now.Add(time.Second)
			}
			outages[at] = o
		}
		switch p.Name {
		case "Complete":
			l.unsure[p.Key] = true
		case "CompleteAll":
			for _, key := range p.Keys {
				l.unsure[key] = true
			}
		}
		l.tell("%s of %s: %+v", p.Name, p.Key, o.Fault)
		return o.Fault
	}
}

// crash is where an invocation crashes.
func (s *streamScenario) crash() func(lambdatest.Point) bool {
	strikes := lambdatest.Randomly(s.seed, s.crashes)
	var left atomic.Int32
	left.Store(int32(s.maxCrashes))
	return func(p lambdatest.Point) bool { return strikes(p) && left.Add(-1) >= 0 }
}
