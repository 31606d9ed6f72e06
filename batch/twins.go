package batch

// twins finds records of one batch that are the same work: those with the same key, or with the same ID where they have
// no key. Keys and IDs are not mixed, as one may look like the other.
type twins struct {
	records     []Record
	byKey, byID index
}

func newTwins(records []Record) twins {
	return twins{
		records: records,
		byKey:   index{name: func(i int32) string { return records[i].Key }},
		byID:    index{name: func(i int32) string { return records[i].ID }},
	}
}

// leader returns the record that i follows, or -1 if i is the first with its key and leads from now on. The record has a
// key or an ID.
func (t *twins) leader(i int) int {
	x, name := &t.byKey, t.records[i].Key
	if name == "" {
		x, name = &t.byID, t.records[i].ID
	}
	s := x.find(name, len(t.records))
	if s.record > 0 {
		return int(s.record - 1)
	}
	s.record = int32(i + 1)
	return -1
}

// leader returns the earlier record that i is a twin of, or -1 if it goes on by itself.
//
// A leader is always a record that was prepared before, so it waits for no lane, and a follower is never a leader:
// whatever a follower waits for can move, and the lanes of the two cannot wait for each other.
//
// After the answer has gone out the record is its reader's, and not written to any more: ok is false.
func (e *engine) leader(i int, key string) (leader int, ok bool) {
	r := &e.records[i]
	if key == "" && r.ID == "" {
		return -1, true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return -1, false
	}
	r.Key = key
	return e.twins.leader(i), true
}

// follow makes the worker's record share the outcome of leader, which may have ended already.
func (w *worker) follow(leader int) {
	e, i := w.engine, w.i
	var ended []int32
	e.mu.Lock()
	e.tick()
	e.letGo()
	w.notPreparing()
	switch {
	case e.closed:
	case e.items[leader].phase == phaseEnded:
		ended = e.endLocked(ended, i, e.shared(leader, i))
	default:
		e.items[i].phase = phaseFollower
		e.items[i].next, e.items[leader].follower = e.items[leader].follower, int32(i)
	}
	e.send()
	e.mu.Unlock()
	e.tell(ended)
}

// shared is the outcome of a follower.
func (e *engine) shared(leader, follower int) Settlement {
	r := &e.results[leader]
	s := Settlement{Outcome: r.Outcome, Err: r.Err, Unrecorded: r.Unrecorded}
	switch {
	case s.Outcome == Succeeded:
		s.Outcome = Replayed
	case s.Outcome == DeadLettered && (e.records[leader].ID == "" || e.records[leader].ID != e.records[follower].ID):
		// The sink has the leader. This one is another record with the same key, and would be nowhere if it were told as
		// done: it comes back.
		s = Settlement{Outcome: Failed, Err: r.Err}
	}
	return s
}

// laneWaits reports whether another record of its lane, or of that of one that shares its outcome, waits for the record.
func (e *engine) laneWaits(i int) bool {
	if e.items[i].laneNext >= 0 {
		return true
	}
	for f := e.items[i].follower; f >= 0; f = e.items[f].next {
		if e.items[f].laneNext >= 0 {
			return true
		}
	}
	return false
}
