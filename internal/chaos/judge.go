//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// What must have happened to the first of two effects of a key for there to be a second one.
const (
	byKill     = "its worker was killed before its completion was stored"
	byFreeze   = "its worker was frozen past its lease"
	byRefusal  = "its completion was refused: its worker was too slow"
	byDoubt    = "its completion was not answered in time"
	byFailure  = "its handler failed after it"
	unexcused  = "UNEXPLAINED"
	notStarted = "UNEXPLAINED: its handler never started"
)

// evidence is all that is known of a run when it is over.
type evidence struct {
	*history
	processes map[int]*process
	messages  []*message
	rows      map[string]row      // of the table of claims, by key
	effects   map[string][]string // owners, by key
	times     map[string]int      // how often a transaction changed a key's row
}

// row is an item of the table of claims.
type row struct{ status, owner string }

// verdict is what the evidence comes to.
type verdict struct {
	keys       [2]int         // without and with a transaction
	effects    [2]int         // the same
	repeats    map[string]int // of effects without a transaction, by reason
	lost       int            // keys that were never told as done, or have no effect
	unrecorded int            // keys told as done whose completion may not be stored, and is not
	wrong      []string       // what breaks a promise
}

// judge holds the evidence to the promises.
func judge(e evidence) verdict {
	v := verdict{repeats: make(map[string]int), wrong: slices.Clone(e.wrong)}
	sent := make(map[string]bool, len(e.messages))
	for _, m := range e.messages {
		sent[m.id] = true
		mode := 0
		if m.Tx {
			mode = 1
		}
		v.keys[mode]++
		v.effects[mode] += len(e.effects[m.id])
		v.wrong = append(v.wrong, e.order(m.id)...)
		v.wrong = append(v.wrong, e.done(m)...)
		if m.Tx {
			v.wrong = append(v.wrong, e.once(m.id)...)
		} else {
			v.repeated(&e, m.id)
		}
		if m.told == 0 || len(e.effects[m.id]) == 0 {
			v.lost++
		}
		if e.rows[m.id].status != completed {
			v.unrecorded++
		}
	}
	for key := range e.effects {
		if !sent[key] {
			v.wrong = append(v.wrong, fmt.Sprintf("%s has an effect, and was never sent", key))
		}
	}
	return v
}

// status of a completed row
const completed = "COMPLETED"

// done holds a message to what was told: it was told as done, after it was, it has an effect, and its completion is stored.
func (e *evidence) done(m *message) (wrong []string) {
	r := e.rows[m.id]
	known, isKnown := e.known[m.id]
	switch {
	case m.told == 0:
		wrong = append(wrong, m.id+" is lost: it was never told as done")
	case !isKnown || m.told < known:
		wrong = append(wrong, fmt.Sprintf("%s was told as done at %d, and no worker knew that before %d", m.id, m.told, known))
	}
	if len(e.effects[m.id]) == 0 {
		wrong = append(wrong, m.id+" is lost: it has no effect")
	}
	unrecorded := slices.ContainsFunc(e.keys[m.id], func(c *claim) bool {
		return c.settlement == name(idempotency.EventUnrecorded)
	})
	switch {
	case r.status != completed && (m.Tx || !unrecorded):
		wrong = append(wrong, fmt.Sprintf("%s has the status %q, want %s", m.id, r.status, completed))
	case r.status == completed && !slices.Contains(e.effects[m.id], r.owner):
		wrong = append(wrong, fmt.Sprintf("%s was completed by owner %s, which had no effect", m.id, r.owner))
	}
	return wrong
}

// once holds a key to what a transaction promises: one effect, of the owner that completed it.
func (e *evidence) once(key string) (wrong []string) {
	owners := e.effects[key]
	if len(owners) != 1 || e.times[key] != 1 {
		wrong = append(wrong, fmt.Sprintf("%s has %d effects by transactions, which changed its row %d times; want 1 and 1",
			key, len(owners), e.times[key]))
	}
	return wrong
}

// unscheduled is for how long a busy machine may not run a process. That is a freeze that nobody has ordered.
const unscheduled = 500 * time.Millisecond

// order holds the starts of a key's handlers to the guarantee: none while a live claim holds the key, none after its
// completion was stored.
func (e *evidence) order(key string) (wrong []string) {
	starts := e.starts(key)
	for i, c := range starts {
		// Between its last look at the clock and its start nothing can keep a process from standing still.
		frozen := e.processes[c.worker].wasFrozen(c.claimed, c.started)
		delayed := frozen || c.started > c.lease
		if c.started > c.lease+unscheduled.Milliseconds() && !frozen {
			wrong = append(wrong, fmt.Sprintf("%s started %d ms after its lease", key, c.started-c.lease))
		}
		for _, earlier := range starts[:i] {
			switch {
			case delayed, earlier.returned():
			case earlier.settlement == name(idempotency.EventCompleted):
				wrong = append(wrong, fmt.Sprintf("%s started again although it was completed", key))
			case c.started <= earlier.lease+skew.Milliseconds():
				wrong = append(wrong, fmt.Sprintf("%s started again %d ms before a live claim could be taken over",
					key, earlier.lease+skew.Milliseconds()-c.started))
			}
		}
	}
	return wrong
}

// starts returns the claims of a key whose handlers started, in that order.
func (e *evidence) starts(key string) []*claim {
	starts := slices.DeleteFunc(slices.Clone(e.keys[key]), func(c *claim) bool { return c.started == 0 })
	slices.SortStableFunc(starts, func(a, b *claim) int { return cmp.Compare(a.started, b.started) })
	return starts
}

// repeated finds the reason of each effect beyond a key's last one.
func (v *verdict) repeated(e *evidence, key string) {
	owners := slices.Clone(e.effects[key])
	if len(owners) < 2 {
		return
	}
	last := owners[0]
	for _, owner := range owners {
		if c := e.claims[owner]; c == nil || c.key != key || c.started == 0 {
			v.wrong = append(v.wrong, fmt.Sprintf("%s was repeated: %s", key, notStarted))
			return
		}
		if e.claims[owner].started >= e.claims[last].started {
			last = owner
		}
	}
	for _, owner := range owners {
		if owner == last {
			continue
		}
		reason := e.reason(e.claims[owner])
		v.repeats[reason]++
		if reason == unexcused {
			v.wrong = append(v.wrong, fmt.Sprintf("%s was repeated, and its effect by worker %d has no excuse: it was %q",
				key, e.claims[owner].worker, e.claims[owner].settlement))
		}
	}
}

// reason returns why an effect could be repeated: what has kept its completion from being stored in time.
func (e *evidence) reason(c *claim) string {
	p := e.processes[c.worker]
	switch {
	case c.settlement == name(idempotency.EventCompleted):
		return unexcused
	case p.wasFrozen(c.started, c.settled):
		return byFreeze
	case c.settled == 0 && p.killed:
		return byKill
	case c.settlement == name(idempotency.EventLost):
		return byRefusal
	case c.settlement == name(idempotency.EventUnrecorded):
		return byDoubt
	case c.failed:
		return byFailure
	}
	return unexcused
}
