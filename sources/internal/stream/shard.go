package stream

import (
	"errors"
	"fmt"
)

// Shard is a shard of a stream. What a record does not say of it is empty.
type Shard struct{ Stream, ID string }

// String names the shard in a sentence.
func (s Shard) String() string {
	if s.ID == "" {
		return fmt.Sprintf("stream %.200q", s.Stream)
	}
	return fmt.Sprintf("shard %.200q of stream %.200q", s.ID, s.Stream)
}

// Shards notices events with records of more than one shard.
type Shards struct{ first, second Shard }

// See is told of every record's shard. What a record does not say may be anything.
func (s *Shards) See(shard Shard) {
	if s.Mixed() {
		return
	}
	if differ(s.first.Stream, shard.Stream) || differ(s.first.ID, shard.ID) {
		s.second = shard
		return
	}
	if s.first.Stream == "" {
		s.first.Stream = shard.Stream
	}
	if s.first.ID == "" {
		s.first.ID = shard.ID
	}
}

func differ(a, b string) bool { return a != b && a != "" && b != "" }

// Mixed reports whether there is more than one.
func (s *Shards) Mixed() bool { return s.second != Shard{} }

// One returns the shard that all records are of, or an error that says what they are of.
func (s *Shards) One() (Shard, error) {
	switch {
	case s.Mixed():
		return Shard{}, fmt.Errorf("event has records of %v and of %v, want those of one", s.first, s.second)
	case s.first == Shard{}:
		return Shard{}, errors.New("event has records that name no shard, want those of one")
	}
	return s.first, nil
}
