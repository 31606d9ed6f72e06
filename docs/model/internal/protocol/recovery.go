package protocol

// Settle returns NothingIsLost if a state has no good end. While something moves, its next step is possible, and since
// each such step takes an attempt nearer to its end, all of them end. So it is enough that a next step is possible in
// every state, and that a redelivery finishes the record in those where nothing moves any more.
func (c *Config) Settle(s *State) uint64 {
	moves := false
	for i := range s.Attempts {
		a := &s.Attempts[i]
		moves = moves || a.live() && !s.Processes[a.Process].Frozen
	}
	if moves {
		if _, possible := c.first(s, kind.isProgress); !possible {
			return uint64(NothingIsLost)
		}
		return 0
	}
	var done [maxRecords]bool
	c.finished(s, &done)
	// That is all that the answer depends on.
	at := State{Now: s.Now, Records: s.Records}
	key := recovery{at, done}
	good, known := c.recovered[key]
	if !known {
		if c.recovered == nil {
			c.recovered = map[recovery]bool{}
		}
		good = c.recovers(at, done)
		c.recovered[key] = good
	}
	if !good {
		return uint64(NothingIsLost)
	}
	return 0
}

// stranger is the token of an attempt that is forgotten. The attempts that follow begin to count again.
const stranger = 127

type recovery struct {
	at   State
	done [maxRecords]bool
}

// first returns the state after the first step of a kind.
func (c *Config) first(s *State, is func(kind) bool) (next State, found bool) {
	c.Next(s, func(step Step, after *State) {
		if !found && is(step.Kind) {
			next, found = *after, true
		}
	})
	return next, found
}

// recovers reports whether redeliveries to fresh processes, one after the other, finish all records. They have the
// slowest clock. What was frozen stays frozen, what is late never arrives, and nobody deletes what has expired.
func (c *Config) recovers(s State, done [maxRecords]bool) bool {
	quiet := *c
	quiet.Attempts = maxAttempts
	waited := int8(0)
	for waited <= c.Lease+2*c.Skew+1 {
		if c.allDone(&done) {
			return true
		}
		s.Attempts, s.Processes, s.Late = [maxAttempts]attempt{}, [maxProcesses]process{}, [maxLate]request{}
		for r := range s.Records {
			if row := &s.Records[r].Row; row.Owner != 0 {
				row.Owner = stranger
			}
		}
		for next, possible := quiet.first(&s, func(k kind) bool { return k == delivers }); possible; {
			s = next
			c.finished(&s, &done)
			next, possible = quiet.first(&s, kind.isProgress)
		}
		if c.allDone(&done) {
			return true
		}
		s.Now++
		waited++
	}
	return false
}

// finished marks the records that some attempt has told as done.
func (c *Config) finished(s *State, done *[maxRecords]bool) {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Phase == ended && a.Outcome.done() {
			done[a.Record] = true
		}
	}
	for r := range s.Records {
		if s.Records[r].Told != notTold {
			done[r] = true
		}
	}
}

func (c *Config) allDone(done *[maxRecords]bool) bool {
	return done[0] && (!c.Lane || done[1]) && (!c.Group || done[2])
}
