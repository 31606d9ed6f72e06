package shardtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/shardtest"
)

func TestBatchSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize = 2 })
		s.put("s", "a b c d e")
		s.drain(succeed)
		if diff := cmp.Diff([]string{"a b", "c d", "e"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// A retry is the batch that has failed, without what has come in the meantime.
func TestARetryTakesNoNewRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		s.put("s", "a b")
		first := true
		s.drain(inOrder(func(name string) error {
			if name == "b" && first {
				first = false
				s.put("s", "c")
				return errNo
			}
			return nil
		}))
		if diff := cmp.Diff([]string{"a b", "b", "c"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestBatchingWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchingWindow, o.BatchSize = 10*time.Second, 3 })
		start := time.Now()
		go func() {
			for _, names := range []string{"a", "b c", "d e f", "g", "h"} { // at 4, 8, 12, 16 and 20 s
				time.Sleep(4 * time.Second)
				s.put("s", names)
			}
			time.Sleep(time.Second)
			s.closeShard("s")
		}()
		s.run(time.Minute, succeed)
		want := []string{
			"8 a b c", // full
			"12 d e f",
			"21 g h", // cannot fill any more: the shard has ended
		}
		if diff := cmp.Diff(want, s.log(start)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestBatchingWindowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchingWindow = 10 * time.Second })
		start := time.Now()
		go func() {
			for _, name := range []string{"a", "b", "c"} { // at 6, 12 and 18 s
				time.Sleep(6 * time.Second)
				s.put("s", name)
			}
		}()
		s.run(time.Minute, succeed)
		if diff := cmp.Diff([]string{"16 a b", "28 c"}, s.log(start)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// large puts a record whose JSON has n bytes.
func (s *stream) large(name string, n int) {
	s.t.Helper()
	s.write(func(w shardtest.Writer[string]) {
		w.Append("s", shardtest.Record[string]{
			SequenceNumber: name, ArrivedAt: time.Now(), Event: name, JSON: fmt.Appendf(nil, "%q", strings.Repeat(name, n-2)),
		})
	})
}

func TestPayloadLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		s.large("a", 3<<20)
		s.large("b", 3<<20)
		s.large("c", 7<<20)
		s.large("d", 100)
		largest := 0
		h := lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
			largest = max(largest, len(payload))
			return nil, nil
		})
		s.drain(h)
		if diff := cmp.Diff([]string{"a", "b", "d"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if largest > lambdatest.MaxPayload {
			t.Errorf("the largest payload has %d bytes, want at most %d", largest, lambdatest.MaxPayload)
		}
		discarded := s.Discarded()
		if len(discarded) != 1 || discarded[0].StartSequenceNumber != "c" || discarded[0].Reason != shardtest.PayloadTooLarge ||
			discarded[0].Attempts != 0 {
			t.Errorf("discarded %+v, want c, which no payload can hold", discarded)
		}
	})
}

// Lanes go by the first letter. Each keeps its order, with failures of its own, and several run at once.
func TestParallelizationFactor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.ParallelizationFactor, o.BatchSize = 10, 2 })
		start := time.Now()
		s.put("s", "a1 b1 a2 b2 a3 b3 a4 b4")
		first := true
		s.drain(handler(func(_ context.Context, e event) (string, error) {
			time.Sleep(time.Second)
			if e.Records[0] == "a1" && first {
				first = false
				return report("a2"), nil
			}
			return "", nil
		}))
		lanes := map[string][]string{}
		for i, d := range s.observed() {
			lanes[d.Records[0][:1]] = append(lanes[d.Records[0][:1]], s.log(start)[i])
		}
		want := map[string][]string{
			"a": {"0 a1 a2", "1 a2", "2 a3 a4"},
			"b": {"0 b1 b2", "1 b3 b4"},
		}
		if diff := cmp.Diff(want, lanes); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestOneInvocationAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize = 1 })
		s.open("other")
		start := time.Now()
		s.put("s", "a b")
		s.put("other", "c")
		s.drain(handler(func(context.Context, event) (string, error) {
			time.Sleep(time.Second)
			return "", nil
		}))
		got := map[string]bool{}
		for _, line := range s.log(start) {
			got[line] = true
		}
		if diff := cmp.Diff(map[string]bool{"0 a": true, "1 b": true, "0 c": true}, got); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestChildrenAfterParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.BatchSize, o.MaximumRetryAttempts = 1, 1 })
		s.open("t")
		start := time.Now()
		s.put("s", "a b")
		s.put("t", "c")
		s.open("merged", "s", "t")
		s.put("merged", "d")
		s.closeShard("s")
		s.closeShard("t")
		s.open("grandchild", "merged")
		s.put("grandchild", "e")
		s.closeShard("merged")
		s.drain(handler(func(_ context.Context, e event) (string, error) {
			if e.Records[0] == "b" {
				return report("b"), nil // twice, and then it is discarded
			}
			time.Sleep(time.Second)
			return "", nil
		}))
		got := s.log(start)
		slices.Sort(got) // two shards at once
		want := []string{"0 a", "0 c", "1 b", "1.1 b", "1.1 d", "2.1 e"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// A child is not read as long as its parent can get more records.
func TestChildOfAnOpenShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		s.open("child", "s")
		s.put("child", "b")
		start := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			s.put("s", "a")
			s.closeShard("s")
		}()
		s.drain(succeed)
		if diff := cmp.Diff([]string{"5 a", "5 b"}, s.log(start)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// A shard that was closed before it had a record hands nothing on before its own parents are drained.
func TestGrandchildOfAnEmptyShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		s.open("child", "s")
		s.closeShard("child")
		s.open("grandchild", "child")
		s.put("grandchild", "b")
		start := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			s.put("s", "a")
			s.closeShard("s")
		}()
		s.drain(succeed)
		if diff := cmp.Diff([]string{"5 a", "5 b"}, s.log(start)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// Many generations of shards, each with two parents, are no work to speak of.
func TestManyGenerations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		last := "s"
		for i := range 100 {
			lower, higher, merged := fmt.Sprint("lower", i), fmt.Sprint("higher", i), fmt.Sprint("merged", i)
			s.closeShard(last)
			s.open(lower, last)
			s.open(higher, last)
			s.closeShard(lower)
			s.closeShard(higher)
			s.open(merged, lower, higher)
			last = merged
		}
		s.put(last, "a")
		s.drain(succeed)
		if diff := cmp.Diff([]string{"a"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// A parent whose last records are too old is drained without an invocation, and its child read in the same moment.
func TestChildOfADiscardedParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, func(o *shardtest.Options) { o.MaximumRecordAge = time.Minute })
		s.put("s", "a")
		s.closeShard("s")
		time.Sleep(2 * time.Minute)
		s.open("child", "s")
		s.put("child", "b")
		s.drain(succeed)
		if diff := cmp.Diff([]string{"b"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}
