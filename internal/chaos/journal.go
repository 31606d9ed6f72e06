//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// entry is a line of the journal, the file to which all workers append what happens to claims. A line is one write, so
// that a process that is killed loses what it did not get to write, and nothing before it. A line may be torn: Linux breaks
// a write off at the end of a page if its process is killed. The next line then begins behind what there is.
type entry struct {
	At     int64  `json:"at"` // epoch milliseconds
	Worker int    `json:"worker"`
	Kind   string `json:"kind"` // the name of an idempotency.EventKind, or one of those below
	Key    string `json:"key"`
	Owner  string `json:"owner"`
	Lease  int64  `json:"lease,omitempty"` // of started: its end, epoch milliseconds
	Err    string `json:"err,omitempty"`
}

// begin is how each line begins, and nothing else in it.
const begin = `{"at":`

// What the handler adds to the events of the guard.
const (
	started = "started" // it runs, under this claim
	failed  = "failed"  // it returns an error
)

// journal is a worker's end of it.
type journal struct {
	file   *os.File
	worker int
}

func (j *journal) write(e entry) {
	e.At, e.Worker = time.Now().UnixMilli(), j.worker
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		// Without it nothing can be told from the run.
		fmt.Fprintf(os.Stderr, "chaos: worker %d: journal: %v\n", j.worker, err)
		os.Exit(1)
	}
}

// claim is what became of one claim, as far as its worker got to say.
type claim struct {
	key, owner string
	worker     int
	claimed    int64  // when the worker had the answer
	started    int64  // when the handler started; 0: it did not
	lease      int64  // its end; 0 if the handler did not start
	failed     bool   // the handler returned an error
	renewed    bool   // another owner has taken its place before the handler started
	settled    int64  // 0: not yet
	settlement string // the name of an idempotency.EventKind; empty: not yet
}

// returned reports whether the key was given back, as far as the claim's worker knows or had asked for.
func (c *claim) returned() bool {
	switch c.settlement {
	case name(idempotency.EventReleased), name(idempotency.EventUnstarted), name(idempotency.EventCancelled):
		return true
	}
	return c.failed // the release may have arrived without anyone knowing
}

func name(kind idempotency.EventKind) string { return kind.String() }

// history is what the journal says.
type history struct {
	claims map[string]*claim   // by owner
	keys   map[string][]*claim // by key
	known  map[string]int64    // by key: when a worker first knew that the work is done
	counts map[string]int      // entries by kind
	torn   int                 // lines without an end
	wrong  []string            // what no worker should ever write
}

func newHistory() *history {
	return &history{
		claims: make(map[string]*claim), keys: make(map[string][]*claim),
		known: make(map[string]int64), counts: make(map[string]int),
	}
}

func (h *history) add(e entry) {
	h.counts[e.Kind]++
	c := h.claims[e.Owner]
	switch e.Kind {
	case name(idempotency.EventClaimed), name(idempotency.EventTakenOver), name(idempotency.EventRenewed):
		if c != nil {
			h.wrong = append(h.wrong, fmt.Sprintf("owner %s of %s has claimed twice", e.Owner, e.Key))
		}
		if e.Kind == name(idempotency.EventRenewed) {
			for _, c := range h.keys[e.Key] {
				c.renewed = c.renewed || c.worker == e.Worker && c.settled == 0 && c.started == 0
			}
		}
		c = &claim{key: e.Key, owner: e.Owner, worker: e.Worker, claimed: e.At}
		h.claims[e.Owner] = c
		h.keys[e.Key] = append(h.keys[e.Key], c)
		return
	case name(idempotency.EventReplayed):
		h.knows(e)
		return
	case name(idempotency.EventInProgress), name(idempotency.EventTooLate), name(idempotency.EventClaimFailed):
		return // no claim was made
	}
	if c == nil || c.key != e.Key || c.worker != e.Worker {
		h.wrong = append(h.wrong, fmt.Sprintf("worker %d writes %q of %s, owner %q, which it has not claimed: %s",
			e.Worker, e.Kind, e.Key, e.Owner, e.Err))
		return
	}
	switch e.Kind {
	case started:
		if c.started != 0 {
			h.wrong = append(h.wrong, fmt.Sprintf("the handler of %s started twice under owner %s", e.Key, e.Owner))
		}
		c.started, c.lease = e.At, e.Lease
	case failed:
		c.failed = true
	default:
		if e.Kind == name(idempotency.EventCompleted) || e.Kind == name(idempotency.EventUnrecorded) {
			h.knows(e)
		}
		c.settled, c.settlement = e.At, e.Kind
	}
}

func (h *history) knows(e entry) {
	if at, ok := h.known[e.Key]; !ok || e.At < at {
		h.known[e.Key] = e.At
	}
}

// tail reads the journal while it grows.
type tail struct {
	lines   *bufio.Reader
	partial []byte // the beginning of a line
	*history
}

func newTail(r io.Reader) *tail { return &tail{lines: bufio.NewReader(r), history: newHistory()} }

// read reads what there is.
func (t *tail) read() error {
	for {
		line, err := t.lines.ReadBytes('\n')
		t.partial = append(t.partial, line...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("chaos: journal: %w", err)
		}
		whole := t.partial[max(0, bytes.LastIndex(t.partial, []byte(begin))):]
		if len(whole) < len(t.partial) {
			t.torn++
		}
		var e entry
		if err := json.Unmarshal(whole, &e); err != nil {
			return fmt.Errorf("chaos: journal has the line %q: %w", t.partial, err)
		}
		t.partial = t.partial[:0]
		t.add(e)
	}
}
