package kpl_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oncekit/oncekit/sources/internal/kpl"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func repeat(n int, field []byte) []byte { return bytes.Repeat(field, n/len(field)) }

// TestSplitMemory splits messages that were made to need much memory.
func TestSplitMemory(t *testing.T) {
	const size = 1 << 20
	key := partitionKey("a")
	for _, test := range []struct {
		name      string
		message   []byte
		isRefused bool
	}{
		{name: "smallest records", message: slices.Concat(key, repeat(size, simple(0, "")))},
		{name: "empty records", message: slices.Concat(key, repeat(size, record())), isRefused: true},
		{name: "records without data", message: slices.Concat(key, repeat(size, record(varintField(1, 0)))), isRefused: true},
		{name: "empty records behind a large one", message: slices.Concat(key, simple(0, string(make([]byte, size/2))), repeat(size/2, record())), isRefused: true},
		{name: "empty keys", message: repeat(size, partitionKey(""))},
		{name: "keys of one byte", message: repeat(size, partitionKey("a"))},
		{name: "empty keys of both tables", message: slices.Concat(repeat(size/2, partitionKey("")), repeat(size/2, explicitHashKey("")))},
		{name: "empty keys and empty records", message: slices.Concat(repeat(size/2, partitionKey("")), repeat(size/2, record())), isRefused: true},
		{name: "smallest fields", message: repeat(size, varintField(5, 0))},
		{name: "one record of smallest fields", message: slices.Concat(key, record(varintField(1, 0), bytesField(3, ""), repeat(size, bytesField(4, ""))))},
		{name: "a large declared length", message: protowire.AppendVarint(slices.Concat(key, repeat(size, simple(0, "")), []byte{0x1a}), 1<<40), isRefused: true},
		{name: "a large declared index", message: slices.Concat(key, simple(math.MaxInt64, string(make([]byte, size)))), isRefused: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := aggregate(test.message)
			var err error
			got := allocated(func() { _, err = kpl.Split(data) })
			if (err != nil) != test.isRefused {
				t.Errorf("error is %v, want one: %v", err, test.isRefused)
			}
			if limit := uint64(10*len(data)) + 64<<10; got > limit {
				t.Errorf("Split of %d bytes allocated %d, want at most %d", len(data), got, limit)
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	var records []kpl.UserRecord
	for i := range 1000 {
		records = append(records, kpl.UserRecord{PartitionKey: fmt.Sprint(i), ExplicitHashKey: fmt.Sprint(i), Data: []byte("data")})
	}
	data := kpl.Append(nil, records)
	if got := testing.AllocsPerRun(10, func() { _, _ = kpl.Split(data) }); got != 3 {
		t.Errorf("Split allocates %v times, want 3: keys, their text, records", got)
	}
	if got := testing.AllocsPerRun(10, func() { kpl.IsAggregate(data) }); got != 0 {
		t.Errorf("IsAggregate allocates %v times, want 0", got)
	}
}
