package kinesistest_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestNewStreamRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		stream string
		option func(*kinesistest.Options)
		want   string
	}{
		{"no name", "", nil, `kinesistest: stream name is "", but must be 1 to 128`},
		{"a slash", "a/b", nil, `stream name is "a/b"`},
		{"129 letters", strings.Repeat("a", 129), nil, "1 to 128 letters"},
		{"negative shards", "s", func(o *kinesistest.Options) { o.Shards = -1 }, "Shards is -1, but must be 1 to 1000"},
		{"many shards", "s", func(o *kinesistest.Options) { o.Shards = 1001 }, "Shards is 1001"},
		{"large records", "s", func(o *kinesistest.Options) { o.MaxRecordSize = 10<<20 + 1 }, "MaxRecordSize is 10485761, but must be 1 to 10485760"},
		{"negative records", "s", func(o *kinesistest.Options) { o.MaxRecordSize = -1 }, "MaxRecordSize is -1"},
		{"consumer", "s", func(o *kinesistest.Options) { o.Consumer = "a:b" }, `Consumer is "a:b"`},
		{"shared option", "s", func(o *kinesistest.Options) { o.BatchSize = 10001 }, "kinesistest: BatchSize is 10001, but must be 1 to 10000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.option == nil {
				test.option = func(*kinesistest.Options) {}
			}
			_, err := kinesistest.NewStream(test.stream, test.option)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want it to contain %q", err, test.want)
			}
		})
	}
}

func TestPutRefuses(t *testing.T) {
	s := newStream(t)
	two := new(big.Int).Lsh(big.NewInt(1), 128).String()
	for _, test := range []struct {
		record kinesistest.Record
		want   string
	}{
		{kinesistest.Record{}, "PartitionKey has 0 characters, but must have 1 to 256"},
		{kinesistest.Record{PartitionKey: strings.Repeat("ä", 257)}, "PartitionKey has 257 characters"},
		{kinesistest.Record{PartitionKey: "k", ExplicitHashKey: two}, `ExplicitHashKey is "` + two},
		{kinesistest.Record{PartitionKey: "k", ExplicitHashKey: "-1"}, `ExplicitHashKey is "-1"`},
		{kinesistest.Record{PartitionKey: "k", ExplicitHashKey: "0x1"}, `ExplicitHashKey is "0x1"`},
		{kinesistest.Record{PartitionKey: "k", ExplicitHashKey: "+1"}, `ExplicitHashKey is "+1"`},
		{kinesistest.Record{PartitionKey: "k", ExplicitHashKey: "007"}, `ExplicitHashKey is "007"`},
		{kinesistest.Record{PartitionKey: "k", ExplicitHashKey: "00"}, `ExplicitHashKey is "00"`},
		{kinesistest.Record{PartitionKey: "k\xff"}, `PartitionKey is "k\xff", but must be UTF-8`},
		{kinesistest.Record{PartitionKey: "k", Data: make([]byte, 1<<20)}, "record has 1048577 bytes, but must have at most MaxRecordSize (1048576)"},
		{kinesistest.Record{PartitionKey: "k", WithoutPartitionKey: true}, "must have no PartitionKey"},
		{kinesistest.Record{ExplicitHashKey: "1", WithoutPartitionKey: true}, "no ExplicitHashKey"},
	} {
		if _, _, err := s.Put(test.record); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Put of %.100v is %v, want an error with %q", test.record, err, test.want)
		}
	}
	for _, r := range []kinesistest.Record{
		{PartitionKey: strings.Repeat("ä", 256)},
		{PartitionKey: "k", Data: make([]byte, 1<<20-1)},
		{PartitionKey: "k", ExplicitHashKey: new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1)).String()},
	} {
		if _, _, err := s.Put(r); err != nil {
			t.Error(err)
		}
	}
}

// The four shards of a stream have a quarter of the hash keys each. MD5 of "a" begins with 0c, of "b" with 92, of "c"
// with 4a, of "d" with 82 and of "e" with e1.
func TestShardOfAKey(t *testing.T) {
	s := newStream(t, func(o *kinesistest.Options) { o.Shards = 4 })
	got := map[string]string{}
	for _, r := range []kinesistest.Record{
		{PartitionKey: "a"}, {PartitionKey: "b"}, {PartitionKey: "c"}, {PartitionKey: "d"}, {PartitionKey: "e"},
		{PartitionKey: "b", ExplicitHashKey: "0"},
		{PartitionKey: "a", ExplicitHashKey: "340282366920938463463374607431768211455"},
		{PartitionKey: "a", ExplicitHashKey: "85070591730234615865843651857942052864"}, // 2^126
		{PartitionKey: "a", ExplicitHashKey: "85070591730234615865843651857942052863"},
	} {
		shard, _, err := s.Put(r)
		if err != nil {
			t.Fatal(err)
		}
		got[r.PartitionKey+r.ExplicitHashKey] = shard
	}
	want := map[string]string{
		"a": "shardId-000000000000", "b": "shardId-000000000002", "c": "shardId-000000000001", "d": "shardId-000000000002",
		"e": "shardId-000000000003", "b0": "shardId-000000000000",
		"a340282366920938463463374607431768211455": "shardId-000000000003",
		"a85070591730234615865843651857942052864":  "shardId-000000000001",
		"a85070591730234615865843651857942052863":  "shardId-000000000000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shards (-want +got):\n%s", diff)
	}
}

func TestSplitAndMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		put(t, s, "a1", "e1")
		lower, higher, err := s.Split("shardId-000000000000")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{lower, higher}, s.Shards()); diff != "" {
			t.Errorf("open shards after the split (-want +got):\n%s", diff)
		}
		put(t, s, "a2", "e2")
		merged, err := s.Merge(higher, lower)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, "a3", "e3")
		if diff := cmp.Diff([]string{merged}, s.Shards()); diff != "" {
			t.Errorf("open shards after the merge (-want +got):\n%s", diff)
		}

		var order log[string]
		drain(t, s, inOrder(func(_ context.Context, r events.KinesisEventRecord) error {
			time.Sleep(time.Second)
			shard, _, _ := strings.Cut(r.EventID, ":")
			order.add(fmt.Sprintf("%s %s", shard, r.Kinesis.Data))
			return nil
		}))
		got := order.all()
		if len(got) == 6 && got[2] > got[3] {
			got[2], got[3] = got[3], got[2] // two shards at once
		}
		want := []string{
			"shardId-000000000000 a1", "shardId-000000000000 e1", "shardId-000000000001 a2", "shardId-000000000002 e2",
			"shardId-000000000003 a3", "shardId-000000000003 e3",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestSplitAndMergeRefuse(t *testing.T) {
	s := newStream(t, func(o *kinesistest.Options) { o.Shards = 3 })
	ids := s.Shards()
	if _, _, err := s.Split(ids[1]); err != nil {
		t.Fatal(err)
	}
	_, _, closed := s.Split(ids[1])
	_, far := s.Merge(ids[0], ids[2])
	_, same := s.Merge(ids[0], ids[0])
	_, unknown := s.Merge(ids[0], "shardId-000000000099")
	for _, test := range []struct {
		err  error
		want string
	}{
		{closed, `kinesistest: stream "clicks" has no open shard "shardId-000000000001"`},
		{far, "are not adjacent"}, {same, "are not adjacent"}, {unknown, `no open shard "shardId-000000000099"`},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("error is %v, want it to contain %q", test.err, test.want)
		}
	}
	if got := len(s.Shards()); got != 4 {
		t.Errorf("%d shards are open, want 4", got)
	}
}

func TestSequenceNumbers(t *testing.T) {
	s := newStream(t, func(o *kinesistest.Options) { o.Shards = 2 })
	last := ""
	for i := range 2000 {
		number := put(t, s, fmt.Sprint(i%10))[0]
		if len(number) != 56 || !strings.HasPrefix(number, "4959") || number <= last {
			t.Fatalf("sequence number %q follows %q, want a larger one of 56 digits", number, last)
		}
		last = number
	}
}

func TestSameSequenceNumbers(t *testing.T) {
	s := newStream(t, func(o *kinesistest.Options) { o.Shards, o.SameSequenceNumbers = 2, true })
	numbers := put(t, s, "a1", "b1", "a2", "b2")
	if numbers[0] != numbers[1] || numbers[2] != numbers[3] || numbers[0] >= numbers[2] {
		t.Errorf("sequence numbers are %q, want two pairs", numbers)
	}
	ids := map[string]bool{}
	for _, h := range s.Histories() {
		ids[h.Record.EventID] = true
	}
	if len(ids) != 4 {
		t.Errorf("there are %d event IDs, want 4", len(ids))
	}
}

func TestSeed(t *testing.T) {
	numbers := func(seed uint64) []string {
		return put(t, newStream(t, func(o *kinesistest.Options) { o.Seed = seed }), "a", "b")
	}
	if one, again := numbers(1), numbers(1); !cmp.Equal(one, again) {
		t.Errorf("seed 1 gives %q at first and then %q", one, again)
	}
	if one, two := numbers(1), numbers(2); cmp.Equal(one, two) {
		t.Errorf("seeds 1 and 2 both give %q", one)
	}
}

// What is promised of a stream is kept by the shared poller; this only shows that everything is wired to it.
func TestRunRedeliverAndHistories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		numbers := put(t, s, "a1", "a2")
		var seen log[string]
		h := inOrder(func(_ context.Context, r events.KinesisEventRecord) error {
			seen.add(string(r.Kinesis.Data))
			return nil
		})
		drain(t, s, h)
		if err := s.Redeliver(s.Shards()[0], numbers[1]); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Run(ctx, h); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"a1", "a2", "a2"}, seen.all()); diff != "" {
			t.Errorf("handled (-want +got):\n%s", diff)
		}
		histories := s.Histories()
		if len(histories) != 2 || len(histories[1].Delivered) != 2 || histories[1].SequenceNumber != numbers[1] {
			t.Errorf("histories are %+v, want two, the second of a record that was delivered twice", histories)
		}
		if s.Name() != "clicks" || len(s.Discarded()) != 0 {
			t.Errorf("name is %q with %d discarded, want clicks and none", s.Name(), len(s.Discarded()))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := s.Shards(); got != nil {
			t.Errorf("a closed stream has the shards %q", got)
		}
	})
}

// A crash inside a handler leaves nothing behind in a bubble once the stream is closed, whatever the guard still had to do.
func TestCloseBehindACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crashed := false
		s, err := kinesistest.NewStream("clicks", func(o *kinesistest.Options) {
			o.Crash = func(p lambdatest.Point) bool {
				crash := !crashed && p.Moment == lambdatest.AtCheckpoint
				crashed = crashed || crash
				return crash
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		guard, err := idempotency.New("clicks", s.Store(idempotency.NewMemoryStore()))
		if err != nil {
			t.Fatal(err)
		}
		h, err := kinesis.NewHandler(func(ctx context.Context, _ *kinesis.Record[string]) error {
			lambdatest.Checkpoint(ctx, "before the effect")
			return nil
		}, func(o *kinesis.Options) { o.Idempotency, o.Logger = guard, slog.New(slog.DiscardHandler) })
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Put(kinesistest.Record{PartitionKey: "a", Data: []byte("a")}); err != nil {
			t.Fatal(err)
		}
		if err := s.Drain(t.Context(), h); err != nil || !crashed {
			t.Errorf("error is %v, crashed %v", err, crashed)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
