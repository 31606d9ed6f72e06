package shardtest

import (
	"hash/fnv"
	"slices"
	"sort"
	"time"
)

// Record is a record as a kit puts it into a shard.
type Record[R any] struct {
	// SequenceNumber is what an answer names the record by.
	SequenceNumber string
	// Lane is what decides, above a ParallelizationFactor of 1, with which records it keeps its order.
	Lane string
	// ArrivedAt is when the record was put into the stream.
	ArrivedAt time.Time
	// Event is the record as the kit's user sees it.
	Event R
	// JSON is the record as it stands in the event's Records. It must not be changed.
	JSON []byte
}

// record is a record in a shard.
type record[R any] struct {
	Record[R]
	shard    *shard[R]
	position int // among all records of the stream, in the order put

	delivered       []time.Time
	done, discarded time.Time
}

// shard is a part of a stream that keeps its order.
type shard[R any] struct {
	id      string
	parents []*shard[R]
	closed  bool // takes no more records
	passed  bool // handed its turn on to its children, in this pass over the shards
	lanes   []lane[R]
}

// laneOf returns the lane of the records with the given key.
func (s *shard[R]) laneOf(key string) *lane[R] {
	h := fnv.New32a()
	h.Write([]byte(key))
	return &s.lanes[h.Sum32()%uint32(len(s.lanes))]
}

// readable reports whether the shard's turn has come: its parents have handed theirs on, in the same pass. A parent that
// never had a record is drained from the beginning, and still stands behind its own.
func (s *shard[R]) readable() bool {
	return !slices.ContainsFunc(s.parents, func(parent *shard[R]) bool { return !parent.passed })
}

// drained reports whether nothing is left to be delivered, for the moment or for good.
func (s *shard[R]) drained() bool {
	for i := range s.lanes {
		if l := &s.lanes[i]; l.running || l.waiting() > 0 || len(l.work) > 0 || l.window != nil {
			return false
		}
	}
	return true
}

// lane is what of a shard is read in order, one batch at a time: all of it, unless the ParallelizationFactor is above 1.
type lane[R any] struct {
	shard      *shard[R]
	records    []*record[R] // all that there ever were
	next       int          // the index of the first that is not read, or to be read again
	work       []*batch[R]  // what is read and not done with, in order: a batch, or the parts that it was split into
	running    bool         // the first of work is with the handler, or its end is being told
	inFlight   int          // how many records are with the handler
	checkpoint string       // the sequence number of the record last done with, "" if there is none
	gather     time.Time    // when the batching window ends, zero if none is open
	window     *window      // the tumbling window in work
}

// unread returns the records that are not read yet.
func (l *lane[R]) unread() []*record[R] { return l.records[l.next:] }

// waiting returns how many records are still to be delivered, or to be delivered again.
func (l *lane[R]) waiting() int {
	n := len(l.unread())
	for _, b := range l.work {
		n += len(b.records)
	}
	return n
}

// rewind goes back to the first record at or after the position, unless that is not read yet.
func (l *lane[R]) rewind(position int) {
	first := sort.Search(len(l.records), func(i int) bool { return l.records[i].position >= position })
	l.next = min(l.next, first)
}

// lastRead returns the sequence number of the record before the first that is not read, or to be read again, and "" if
// there is none.
func (l *lane[R]) lastRead() string {
	if l.next == 0 {
		return ""
	}
	return l.records[l.next-1].SequenceNumber
}
