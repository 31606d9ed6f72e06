package protocol

import "fmt"

// Config is what is explored: how large, with which faults, and with which rules switched off.
type Config struct {
	Name string
	Says string // what it is about, for people

	Skew    int8 // how far clocks may differ
	Lease   int8 // of a claim
	KeyLife int8 // from a completion to its expiry
	Horizon int8 // true time at which time stops

	Offsets  []int8 // how far each process's clock is ahead, at most Skew
	Attempts int    // deliveries, at most maxAttempts
	Tries    int8   // how often one request is sent, at most
	Faults   int8   // how many happen, at most
	Kinds    faults // which may

	Lane        bool // records 0 and 1 are a lane, delivered together
	Group       bool // record 2 is delivered with them, in a lane of its own, and completions may share a call
	Fused       bool // a reply is read when it is given, and a completion is sent when the handler returns
	Transaction bool // the completion changes the business row too
	Renewals    int8 // of a claim, at most
	Deletion    bool // the table deletes what has expired
	Peer        bool // another tool updates and deletes without conditions

	Off Rules

	recovered map[recovery]bool
}

type faults uint16

const (
	crashes faults = 1 << iota
	freezes
	stragglers
	lostRequests
	lostReplies
	delays
	throttles
	failures // of the handler
	handDeletions

	anyFault = handDeletions<<1 - 1
	network  = lostRequests | lostReplies | delays | throttles
)

// Scenarios returns what is explored. The large ones take minutes.
func Scenarios(large bool) []Config {
	// Of the two processes the clock of one is ahead, by all that is allowed. A key outlives whatever is explored, except
	// where its expiry is the point.
	base := Config{
		Skew: 1, Lease: 2, KeyLife: 20, Offsets: []int8{0, 1},
		Attempts: 2, Tries: 2, Faults: 1, Kinds: anyFault &^ handDeletions,
	}
	with := func(name, says string, change func(c *Config)) Config {
		c := base
		c.Name, c.Says = name, says
		change(&c)
		return c
	}
	pick := func(small, bigger int8) int8 {
		if large {
			return bigger
		}
		return small
	}
	return []Config{
		with("quiet", "one key and no faults at all", func(c *Config) {
			c.Attempts, c.Faults, c.Horizon = int(pick(2, 3)), 0, pick(5, 8)
		}),
		with("faults", "one key, and all faults of processes and network", func(c *Config) {
			c.Faults, c.Horizon = pick(1, 2), pick(3, 4)
		}),
		with("third", "one key, and a third delivery after the faults of the first two", func(c *Config) {
			c.Attempts, c.Fused, c.Horizon = 3, true, pick(0, 5)
		}),
		with("expiry", "the key lives for one tick, and the table deletes what has expired", func(c *Config) {
			c.KeyLife, c.Deletion, c.Fused, c.Horizon = 1, true, !large, pick(4, 6)
			if !large {
				c.Kinds = crashes | freezes
			}
		}),
		with("deletion", "rows are deleted by hand", func(c *Config) {
			c.Kinds, c.Fused, c.Faults, c.Horizon = anyFault, true, pick(1, 2), pick(3, 4)
		}),
		with("renewal", "owners renew their claims", func(c *Config) {
			c.Renewals, c.Kinds, c.Fused, c.Horizon = 2, delays, true, pick(4, 7)
			if large {
				c.Kinds |= crashes | freezes | lostRequests | lostReplies | throttles
			}
		}),
		with("transaction", "the completion changes the business row too", func(c *Config) {
			c.Transaction, c.Fused, c.Faults, c.Horizon = true, true, pick(1, 2), pick(3, 5)
		}),
		with("lane", "two records in order", func(c *Config) {
			c.Lane, c.Fused, c.Attempts, c.Horizon = true, true, int(pick(3, 4)), 3
			c.Kinds = crashes | lostRequests
			if large {
				c.Kinds |= freezes | delays | lostReplies
			}
		}),
		with("group", "two records in order and a third beside them, whose completions share calls", func(c *Config) {
			c.Lane, c.Group, c.Fused, c.Attempts, c.Horizon = true, true, true, int(pick(3, 4)), pick(1, 3)
			c.Offsets, c.Skew = []int8{0, 0}, 0
			c.Kinds = crashes | lostRequests | lostReplies | throttles
		}),
		with("peer", "another tool on the table updates and deletes without conditions", func(c *Config) {
			c.Peer, c.Fused, c.Faults, c.Horizon = true, true, pick(0, 1), pick(4, 6)
		}),
	}
}

func (c *Config) clock(s *State, process int8) int8 { return s.Now + c.Offsets[process] }

// deadline is when the handler's context ends.
func (a *attempt) deadline() int8 { return a.Lease - 1 }

// token returns the owner token of an attempt. It is never 0.
func (c *Config) token(s *State, i int, version int8) int8 {
	switch {
	case c.Off.has(FreshOwner):
		return 1 + s.Attempts[i].Process
	case c.Off.has(RenewComparesAndSets):
		version = 0
	}
	return 1 + int8(i)*4 + version
}

// Bounds says how large an exploration is.
func (c *Config) Bounds() string {
	return fmt.Sprintf("processes %d, attempts %d, faults %d, ticks %d", len(c.Offsets), c.Attempts, c.Faults, c.Horizon)
}
