package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// keyed is records whose keys are their partition keys, which fail as fails says.
type keyed struct {
	numbers []string
	key     func(i int) string
	fails   func(i int) error
}

func (s *keyed) Prepare(i int) (pipeline.Identity, error) {
	if s.key == nil {
		return pipeline.Identity{Key: strconv.Itoa(i), Own: true}, nil
	}
	return pipeline.Identity{Key: s.key(i)}, nil
}
func (s *keyed) Handle(_ context.Context, i int) error { return s.fails(i) }
func (s *keyed) ItemIdentifier(i int) (string, string) { return s.numbers[i], "sequence number" }

var (
	one   = Shard{Stream: "s", ID: "shard-1"}
	other = Shard{Stream: "s", ID: "shard-2"}
)

func seen(shards ...Shard) (s Shards) {
	for _, shard := range shards {
		s.See(shard)
	}
	return s
}

// The answer is the sequence number of the first failed record in the batch, however the numbers compare.
func TestAnswer(t *testing.T) {
	numbers := []string{"10", "9", "", "100", "11"}
	for _, test := range []struct {
		name   string
		fails  []int
		shards Shards
		want   []string
		err    string
	}{
		{"success", nil, seen(one), nil, ""},
		{"success of two shards", nil, seen(one, other), nil, ""},
		{"first", []int{0, 1, 2}, seen(one), []string{"10"}, ""},
		{"one of several", []int{4, 1}, seen(one), []string{"9"}, ""},
		{"the last", []int{4}, seen(Shard{}), []string{"11"}, ""},
		{"no number behind", []int{1, 2}, seen(one), []string{"9"}, ""},
		{"no number", []int{2, 3}, seen(one), nil, "test: record 2 has no sequence number and failed, so the whole batch has to come back: 2 fails"},
		{"two shards", []int{3}, seen(one, other, one), nil, `shard "shard-1" of stream "s" and of shard "shard-2" of stream "s"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, guarded := range []bool{false, true} {
				var guard *idempotency.Guard
				if guarded {
					var err error
					if guard, err = idempotency.New("test", idempotency.NewMemoryStore()); err != nil {
						t.Fatal(err)
					}
				}
				options := &batch.Options{Logger: slog.New(slog.DiscardHandler), Concurrency: 1}
				c := NewConfig("test", options, guard, 0, Order{})
				records := make([]batch.Record, len(numbers))
				for i := range records {
					records[i] = batch.Record{ID: strconv.Itoa(i), Lane: strconv.Itoa(i)}
				}
				source := &keyed{numbers: numbers, fails: func(i int) error {
					for _, f := range test.fails {
						if f == i {
							return fmt.Errorf("%d fails", i)
						}
					}
					return nil
				}}
				got, err := c.Run(t.Context(), records, source, &test.shards)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("identifiers (-want +got):\n%s", diff)
				}
				if (err != nil) != (test.err != "") || !strings.Contains(fmt.Sprint(err), test.err) && err != nil {
					t.Errorf("error is %v, want %q in it", err, test.err)
				}
				if err != nil && !strings.HasPrefix(err.Error(), "test: ") {
					t.Errorf("error is %q, want it to begin with the source", err)
				}
			}
		})
	}
}

// The error of a record that failed is found in that of the invocation.
func TestAnswerKeepsTheError(t *testing.T) {
	want := errors.New("this one")
	c := NewConfig("test", &batch.Options{Logger: slog.New(slog.DiscardHandler)}, nil, 0, Order{})
	source := &keyed{numbers: []string{""}, fails: func(int) error { return want }}
	for _, shards := range []Shards{seen(one), seen(one, other)} {
		if _, err := c.Run(t.Context(), make([]batch.Record, 1), source, &shards); !errors.Is(err, want) {
			t.Errorf("error is %v, want %v in it", err, want)
		}
	}
}

// Which records share a lane, and where a batch stops.
func TestConfig(t *testing.T) {
	guard, err := idempotency.New("test", idempotency.NewMemoryStore())
	if err != nil {
		t.Fatal(err)
	}
	open, err := idempotency.New("test", idempotency.NewMemoryStore(), func(o *idempotency.Options) {
		o.MissingKey = idempotency.MissingKeyRunsUnprotected
	})
	if err != nil {
		t.Fatal(err)
	}
	failOpen, err := idempotency.New("test", idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.FailOpen = true })
	if err != nil {
		t.Fatal(err)
	}
	disabled, err := idempotency.New("test", idempotency.NewMemoryStore(), func(o *idempotency.Options) { o.Disabled = true })
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name         string
		guard        *idempotency.Guard
		concurrency  int
		order        Order
		serial, stop bool
	}{
		{"guard", guard, 0, Order{}, false, false},
		{"guard, one worker", guard, 1, Order{}, false, false},
		{"guard, serial", guard, 10, Order{Serial: true}, true, false},
		{"guard, own keys", guard, 0, Order{Keyed: true}, false, false},
		{"guard that lets keyless run", open, 0, Order{}, false, false},
		{"guard that lets keyless run, own keys", open, 0, Order{Keyed: true}, true, true},
		{"guard that lets keyless run, own keys, one worker", open, 1, Order{Keyed: true}, true, true},
		{"guard that lets keyless run, own keys, two workers", open, 2, Order{Keyed: true}, false, true},
		{"guard that fails open", failOpen, 0, Order{}, true, true},
		{"guard that fails open, two workers", failOpen, 2, Order{}, false, true},
		{"disabled guard", disabled, 0, Order{}, true, true},
		{"disabled guard, two workers", disabled, 2, Order{}, false, true},
		{"no guard", nil, 0, Order{}, true, true},
		{"no guard, one worker", nil, 1, Order{}, true, true},
		{"no guard, four workers", nil, 4, Order{}, false, true},
		{"no guard, four workers, serial", nil, 4, Order{Serial: true}, true, true},
	} {
		options := &batch.Options{Concurrency: test.concurrency}
		c := NewConfig("test", options, test.guard, 0, test.order)
		lanes := func(keys ...string) (lanes []string) {
			records := make([]batch.Record, len(keys))
			c.Lanes(records, func(i int) (string, bool) { return keys[i], keys[i] != "?" })
			for _, r := range records {
				if r.Lane == "" {
					t.Errorf("%s: a record of %q is free", test.name, keys)
				}
				lanes = append(lanes, r.Lane)
			}
			return lanes
		}
		l := lanes("a", "b", "a", "", "")
		if got := l[0] == l[1]; got != test.serial || options.StopOnFailure != test.stop {
			t.Errorf("%s: serial %v, stops on failure %v, want %v and %v", test.name, got, options.StopOnFailure, test.serial, test.stop)
		}
		if l[0] != l[2] || l[3] != l[4] || (l[0] == l[3]) != test.serial {
			t.Errorf("%s: lanes are %q, want one for each key and one for none", test.name, l)
		}
		// A record of which the key is not known may be of any.
		for _, keys := range [][]string{{"?", "a", "b", ""}, {"a", "b", "", "?"}} {
			if l := lanes(keys...); l[0] != l[1] || l[1] != l[2] || l[2] != l[3] {
				t.Errorf("%s: lanes of %q are %q, want one", test.name, keys, l)
			}
		}
	}
}

// One shard is one, whatever some records do not say of it.
func TestShards(t *testing.T) {
	for _, test := range []struct {
		name string
		seen Shards
		want Shard
		err  string
	}{
		{"one", seen(one, one, one), one, ""},
		{"one, and nothing", seen(Shard{}, one, Shard{}), one, ""},
		{"one, and one that names the stream alone", seen(one, Shard{Stream: "s"}), one, ""},
		{"the stream alone first", seen(Shard{Stream: "s"}, one), one, ""},
		{"one, and one that names the shard alone", seen(one, Shard{ID: "shard-1"}), one, ""},
		{"streams without shards", seen(Shard{Stream: "s"}, Shard{Stream: "s"}), Shard{Stream: "s"}, ""},
		{"none", seen(), Shard{}, "event has records that name no shard, want those of one"},
		{"nothing", seen(Shard{}, Shard{}), Shard{}, "event has records that name no shard, want those of one"},
		{"two", seen(one, one, other, one), Shard{}, `event has records of shard "shard-1" of stream "s" and of shard "shard-2" of stream "s", want those of one`},
		{"two streams", seen(Shard{Stream: "s"}, Shard{Stream: "t"}), Shard{}, `event has records of stream "s" and of stream "t", want those of one`},
		{"another stream with the same shard", seen(one, Shard{Stream: "t", ID: "shard-1"}), Shard{}, `of stream "t"`},
	} {
		got, err := test.seen.One()
		if got != test.want || (err != nil) != (test.err != "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: shard is %v, error is %v, want %v and %q", test.name, got, err, test.want, test.err)
		}
	}
}
