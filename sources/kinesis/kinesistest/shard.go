package kinesistest

import (
	"crypto/md5"
	"fmt"
	"math/big"
	"slices"
)

// hashRange is an open shard and the hash keys that belong to it, from first to last.
type hashRange struct {
	shardID     string
	first, last *big.Int
}

func (r hashRange) holds(hash *big.Int) bool { return r.first.Cmp(hash) <= 0 && hash.Cmp(r.last) <= 0 }

// wholeRange returns the range of all hash keys, 0 to 2^128 - 1.
func wholeRange() hashRange {
	last := new(big.Int).Lsh(big.NewInt(1), 128)
	return hashRange{first: new(big.Int), last: last.Sub(last, big.NewInt(1))}
}

// divide returns n ranges, as equal as possible, that make up r.
func (r hashRange) divide(n int) []hashRange {
	size := new(big.Int).Sub(r.last, r.first)
	size.Add(size, big.NewInt(1))
	limit := func(i int) *big.Int {
		at := new(big.Int).Mul(size, big.NewInt(int64(i)))
		return at.Add(r.first, at.Div(at, big.NewInt(int64(n))))
	}
	parts := make([]hashRange, n)
	for i := range parts {
		last := limit(i + 1)
		parts[i] = hashRange{first: limit(i), last: last.Sub(last, big.NewInt(1))}
	}
	return parts
}

// hashOf returns the hash key of a partition key: its MD5 as a number
// (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecord.html).
func hashOf(partitionKey string) *big.Int {
	sum := md5.Sum([]byte(partitionKey))
	return new(big.Int).SetBytes(sum[:])
}

// openShard opens a shard and returns its ID.
func (s *Stream) openShard(w writer, r hashRange, parents ...string) string {
	r.shardID = fmt.Sprintf("shardId-%012d", s.opened)
	s.opened++
	s.open = append(s.open, r)
	w.Open(r.shardID, parents...)
	return r.shardID
}

// closeShard closes the i-th of the open shards.
func (s *Stream) closeShard(w writer, i int) {
	w.CloseShard(s.open[i].shardID)
	s.open = slices.Delete(s.open, i, i+1)
}

// shardOf returns the open shard that a hash key belongs to.
func (s *Stream) shardOf(hash *big.Int) string {
	i := slices.IndexFunc(s.open, func(r hashRange) bool { return r.holds(hash) })
	return s.open[i].shardID // the open shards cover all hash keys
}

// openIndex returns where in s.open the shard stands.
func (s *Stream) openIndex(shardID string) (int, error) {
	i := slices.IndexFunc(s.open, func(r hashRange) bool { return r.shardID == shardID })
	if i < 0 {
		return 0, fmt.Errorf("kinesistest: stream %q has no open shard %q", s.name, shardID)
	}
	return i, nil
}

// Shards returns the IDs of the open shards, in the order of their hash keys.
func (s *Stream) Shards() []string {
	var ids []string
	_ = s.kit.Write(func(writer) error { // fails after Close, when there are none
		open := slices.SortedFunc(slices.Values(s.open), func(a, b hashRange) int { return a.first.Cmp(b.first) })
		for _, r := range open {
			ids = append(ids, r.shardID)
		}
		return nil
	})
	return ids
}

// Split closes an open shard and opens two, which share its hash keys in halves. They are read when the parent is
// drained.
func (s *Stream) Split(shardID string) (lower, higher string, err error) {
	err = s.kit.Write(func(w writer) error {
		i, err := s.openIndex(shardID)
		if err != nil {
			return err
		}
		parent := s.open[i]
		if parent.first.Cmp(parent.last) == 0 {
			return fmt.Errorf("kinesistest: shard %s has one hash key, but must have two to be split", shardID)
		}
		s.closeShard(w, i)
		halves := parent.divide(2)
		lower, higher = s.openShard(w, halves[0], shardID), s.openShard(w, halves[1], shardID)
		return nil
	})
	return lower, higher, err
}

// Merge closes two open shards whose hash keys are adjacent and opens one for both. It is read when both parents are
// drained.
func (s *Stream) Merge(shardID, adjacentShardID string) (merged string, err error) {
	err = s.kit.Write(func(w writer) error {
		i, err := s.openIndex(shardID)
		if err != nil {
			return err
		}
		j, err := s.openIndex(adjacentShardID)
		if err != nil {
			return err
		}
		low, high := s.open[i], s.open[j]
		if low.first.Cmp(high.first) > 0 {
			low, high = high, low
		}
		if new(big.Int).Add(low.last, big.NewInt(1)).Cmp(high.first) != 0 {
			return fmt.Errorf("kinesistest: shards %s and %s are not adjacent", shardID, adjacentShardID)
		}
		s.closeShard(w, max(i, j))
		s.closeShard(w, min(i, j))
		merged = s.openShard(w, hashRange{first: low.first, last: high.last}, shardID, adjacentShardID)
		return nil
	})
	return merged, err
}
