package dynamodbstreamtest

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// hashRange is an open shard and the hashes of the keys that belong to it, from first to before limit.
type hashRange struct {
	first, limit uint64
	shardID      string
}

// divide returns n ranges, as equal as possible, that make up r.
func (r hashRange) divide(n int) []hashRange {
	parts := make([]hashRange, n)
	for i := range parts {
		size := r.limit - r.first
		parts[i] = hashRange{first: r.first + size*uint64(i)/uint64(n), limit: r.first + size*uint64(i+1)/uint64(n)}
	}
	return parts
}

// openShard opens a shard and returns its ID, which looks like those of DynamoDB: a time in milliseconds and something
// random.
func (t *Table) openShard(w writer, r hashRange, parents ...string) string {
	d := t.kit.Seed().Digest("shard", fmt.Sprint(t.opened))
	t.opened++
	r.shardID = fmt.Sprintf("shardId-%020d-%x", time.Now().UnixMilli(), d[:4])
	t.open = append(t.open, r)
	w.Open(r.shardID, parents...)
	return r.shardID
}

// shardOf returns the open shard that an item belongs to.
func (t *Table) shardOf(partition string) string {
	sum := md5.Sum([]byte(partition))
	hash := uint64(binary.BigEndian.Uint32(sum[:]))
	i := slices.IndexFunc(t.open, func(r hashRange) bool { return r.first <= hash && hash < r.limit })
	return t.open[i].shardID // the open shards cover all hashes
}

// Shards returns the IDs of the open shards, in the order of their keys' hashes.
func (t *Table) Shards() []string {
	var ids []string
	_ = t.kit.Write(func(writer) error { // fails after Close, when there are none
		open := slices.SortedFunc(slices.Values(t.open), func(a, b hashRange) int {
			if a.first < b.first {
				return -1
			}
			return 1
		})
		for _, r := range open {
			ids = append(ids, r.shardID)
		}
		return nil
	})
	return ids
}

// Rollover closes an open shard and opens its successor, which has the same items. DynamoDB does this to every shard
// after some hours. The successor is read when the shard is drained.
func (t *Table) Rollover(shardID string) (successor string, err error) {
	children, err := t.replace(shardID, 1)
	if err != nil {
		return "", err
	}
	return children[0], nil
}

// Split closes an open shard and opens two, which share its items. DynamoDB does this when a partition splits. They are
// read when the parent is drained.
func (t *Table) Split(shardID string) (lower, higher string, err error) {
	children, err := t.replace(shardID, 2)
	if err != nil {
		return "", "", err
	}
	return children[0], children[1], nil
}

// replace closes an open shard and opens n that make up its range.
func (t *Table) replace(shardID string, n int) (children []string, err error) {
	err = t.kit.Write(func(w writer) error {
		i := slices.IndexFunc(t.open, func(r hashRange) bool { return r.shardID == shardID })
		if i < 0 {
			return fmt.Errorf("dynamodbstreamtest: table %q has no open shard %q", t.name, shardID)
		}
		parent := t.open[i]
		if parent.limit-parent.first < uint64(n) {
			return fmt.Errorf("dynamodbstreamtest: shard %s is too small to be split", shardID)
		}
		w.CloseShard(shardID)
		t.open = slices.Delete(t.open, i, i+1)
		for _, r := range parent.divide(n) {
			children = append(children, t.openShard(w, r, shardID))
		}
		return nil
	})
	return children, err
}
