//go:build linux

package main

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/oncekit/oncekit/internal/dynamotest"
)

// fate is what happens to a worker, and when.
type fate struct {
	after  int // requests, the last of which is the one that it happens in or after
	moment moment
	pause  time.Duration // before it happens, or before the request arrives

	freezes bool // or is killed
	length  time.Duration
	thaws   bool // or is killed then
}

// moment is where the request is when it happens.
type moment int

const (
	lost     moment = iota // it never arrives
	applied                // it was carried out, and the answer never arrives
	late                   // it arrives some time later
	answered               // it was answered, and what comes after that goes on for a moment
	moments
)

// thawed is how long after the end of its leases a frozen worker goes on, at least.
const thawed = 300 * time.Millisecond

func newFate(chance *rand.Rand) fate {
	below := func(d time.Duration) time.Duration { return time.Duration(chance.Int64N(int64(d))) }
	f := fate{
		after: 1 + chance.IntN(30), moment: moment(chance.IntN(int(moments))), pause: below(20 * time.Millisecond),
		freezes: chance.IntN(5) < 2, thaws: chance.IntN(10) > 0,
		length: timeout + skew + thawed + below(600*time.Millisecond),
	}
	if chance.IntN(3) > 0 {
		f.moment = answered // which is in the handler, mostly
	}
	if f.moment == late {
		f.pause = below(f.length)
	}
	return f
}

// choose decides what becomes of a request of the slot's worker.
func (s *slot) choose(chance *rand.Rand, _ string) dynamotest.Fault {
	if !s.run.strikes.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && s.fate.after > 0 {
		if s.fate.after--; s.fate.after == 0 {
			return s.strike(s.process, s.fate)
		}
	}
	counts := &s.run.faults
	switch p := chance.IntN(100); {
	case p < 2:
		counts.lost.Add(1)
		return dynamotest.LoseReply
	case p < 4:
		counts.delayed.Add(1)
		return dynamotest.DelayReply(time.Duration(chance.Int64N(int64(timeout))))
	case p < 5:
		counts.dropped.Add(1)
		return dynamotest.Drop
	case p < 6:
		counts.refused.Add(1)
		return dynamotest.ServerError
	}
	return nil
}

// strike returns what becomes of the request in which the fate of p comes.
func (s *slot) strike(p *process, f fate) dynamotest.Fault {
	counts := &s.run.faults
	return func(x *dynamotest.Exchange) {
		switch f.moment {
		case lost:
			counts.dropped.Add(1)
			s.hit(p, f)
			x.Reset()
		case applied:
			counts.lost.Add(1)
			_, _ = x.Forward()
			s.hit(p, f)
			x.Reset()
		case late:
			counts.late.Add(1)
			s.hit(p, f)
			time.Sleep(f.pause)
			_, _ = x.Forward()
			x.Reset()
		case answered:
			x.Pass()
			s.run.later.Go(func() {
				time.Sleep(f.pause)
				s.hit(p, f)
			})
		}
	}
}

// hit kills or freezes the process, and gives what it has to others.
func (s *slot) hit(p *process, f fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != p || p.killed {
		return
	}
	if !f.freezes {
		p.killed = true
		p.Kill()
		s.run.faults.killed.Add(1)
		return
	}
	p.frozen = append(p.frozen, interval{from: time.Now().UnixMilli()})
	p.Signal(syscall.SIGSTOP)
	s.run.faults.frozen.Add(1)
	s.run.queue.back(s.held, timeout)
	s.held = nil
	s.run.later.Go(func() {
		time.Sleep(f.length)
		s.thaw(p, f)
	})
}

// thaw lets a frozen process go on, or kills it.
func (s *slot) thaw(p *process, f fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.thaws {
		p.killed = true
		p.Kill()
		s.run.faults.killed.Add(1)
		return
	}
	p.Signal(syscall.SIGCONT)
	p.frozen[len(p.frozen)-1].to = time.Now().UnixMilli()
	s.run.faults.thawed.Add(1)
	s.fate = newFate(s.chance)
}
