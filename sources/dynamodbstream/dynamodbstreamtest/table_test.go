package dynamodbstreamtest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestNewTableRefuses(t *testing.T) {
	good := dynamodbstreamtest.Key{Partition: "id"}
	for _, test := range []struct {
		name   string
		table  string
		key    dynamodbstreamtest.Key
		option func(*dynamodbstreamtest.Options)
		want   string
	}{
		{"short name", "ab", good, nil, `dynamodbstreamtest: table name is "ab", but must be 3 to 255`},
		{"long name", strings.Repeat("a", 256), good, nil, "must be 3 to 255"},
		{"a slash", "a/bc", good, nil, `table name is "a/bc"`},
		{"no key", "abc", dynamodbstreamtest.Key{}, nil, `key attributes are "" and ""`},
		{"sort key only", "abc", dynamodbstreamtest.Key{Sort: "a"}, nil, `key attributes are "" and "a"`},
		{"one name twice", "abc", dynamodbstreamtest.Key{Partition: "a", Sort: "a"}, nil, "two different names"},
		{"long key", "abc", dynamodbstreamtest.Key{Partition: strings.Repeat("a", 256)}, nil, "1 to 255 bytes"},
		{"many shards", "abc", good, func(o *dynamodbstreamtest.Options) { o.Shards = 1001 }, "Shards is 1001, but must be 1 to 1000"},
		{"view", "abc", good, func(o *dynamodbstreamtest.Options) { o.StreamViewType = "ALL" }, `StreamViewType is "ALL"`},
		{"shared option", "abc", good, func(o *dynamodbstreamtest.Options) { o.BatchSize = -1 }, "dynamodbstreamtest: BatchSize is -1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.option == nil {
				test.option = func(*dynamodbstreamtest.Options) {}
			}
			_, err := dynamodbstreamtest.NewTable(test.table, test.key, test.option)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want it to contain %q", err, test.want)
			}
		})
	}
}

// Several lanes and two generations of shards: the changes of each item come in order.
func TestOrderOfItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t, func(o *dynamodbstreamtest.Options) { o.ParallelizationFactor, o.BatchSize, o.Shards = 4, 3, 2 })
		must := changed(t)
		want := map[string][]string{}
		change := func(round int) {
			for i := range 10 {
				id, line, value := fmt.Sprint(i%5), fmt.Sprint(i), fmt.Sprint(round)
				must(table.Put(item(id, line, value)))
				want[id+"/"+line] = append(want[id+"/"+line], value)
			}
		}
		change(1)
		change(2)
		before := table.Shards()
		successor, err := table.Rollover(before[0])
		if err != nil {
			t.Fatal(err)
		}
		lower, higher, err := table.Split(before[1])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{successor, lower, higher}, table.Shards()); diff != "" {
			t.Errorf("open shards (-want +got):\n%s", diff)
		}
		change(3)

		got := map[string][]string{}
		var done log[[2]string]
		seen := map[string]bool{}
		var failing log[string]
		drain(t, table, inOrder(func(_ context.Context, r events.DynamoDBEventRecord) error {
			time.Sleep(time.Second)
			if r.Change.Keys["line"].Number() == "7" && len(failing.all()) < 2 {
				failing.add(r.EventID)
				return errNo
			}
			k := r.Change.Keys
			done.add([2]string{k["id"].String() + "/" + k["line"].Number(), r.Change.NewImage["value"].String()})
			return nil
		}))
		for _, d := range done.all() {
			got[d[0]] = append(got[d[0]], d[1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("changes by item (-want +got):\n%s", diff)
		}
		for _, id := range append(before, successor, lower, higher) {
			if !regexp.MustCompile(`^shardId-\d{20}-[0-9a-f]{8}$`).MatchString(id) || seen[id] {
				t.Errorf("shard ID is %q, want one like those of DynamoDB that was not there before", id)
			}
			seen[id] = true
		}
	})
}

func TestRolloverRefuses(t *testing.T) {
	table := newTable(t)
	shard := table.Shards()[0]
	if _, err := table.Rollover(shard); err != nil {
		t.Fatal(err)
	}
	_, again := table.Rollover(shard)
	_, _, unknown := table.Split("shardId-x")
	for _, err := range []error{again, unknown} {
		if err == nil || !strings.Contains(err.Error(), `dynamodbstreamtest: table "orders" has no open shard "shardId-`) {
			t.Errorf("error is %v, want one that says there is no such open shard", err)
		}
	}
	// Halves of halves, until there is nothing to be halved.
	var err error
	for id := table.Shards()[0]; err == nil; {
		id, _, err = table.Split(id)
	}
	if !strings.Contains(err.Error(), "is too small to be split") {
		t.Errorf("error is %v, want one about a shard that is too small", err)
	}
	if got := len(table.Shards()); got != 33 {
		t.Errorf("%d shards are open, want 33", got)
	}
}

// What is promised of a stream is kept by the shared poller; this only shows that everything is wired to it.
func TestRunStoreRedeliverAndHistories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var observed log[string]
		table := newTable(t, func(o *dynamodbstreamtest.Options) {
			o.Observe = func(d dynamodbstreamtest.Delivery) { observed.add(d.Ending.String()) }
			o.Crash = func(p lambdatest.Point) bool { return p.Moment == lambdatest.StoreCall && p.Attempt == 1 }
			o.StoreFault = func(p lambdatest.Point) lambdatest.Fault {
				if p.Attempt == 2 && p.Name == "Advance" {
					return lambdatest.Fault{Err: errNo}
				}
				return lambdatest.Fault{}
			}
			o.MaximumRetryAttempts = 5
		})
		c := changed(t)(table.Put(key("o", "1")))
		store := table.Store(idempotency.NewMemoryStore())
		h := inOrder(func(ctx context.Context, _ events.DynamoDBEventRecord) error {
			return errors.Join(
				store.Release(ctx, idempotency.ReleaseRequest{Key: "k"}),
				table.Call(ctx, "Advance", "k", func() error { return nil }),
			)
		})
		drain(t, table, h)
		if err := table.Redeliver(c.ShardID, c.SequenceNumber); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := table.Run(ctx, h); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"crashed", "answered", "answered", "answered"}, observed.all()); diff != "" {
			t.Errorf("endings (-want +got):\n%s", diff)
		}
		histories := table.Histories()
		if len(histories) != 1 || len(histories[0].Delivered) != 4 || histories[0].Shard != c.ShardID {
			t.Errorf("histories are %+v, want one of a record that was delivered four times", histories)
		}
		if got := table.Stats(); got.Repeated != 1 || got.Crashes != 1 || len(table.Discarded()) != 0 || table.Name() != "orders" {
			t.Errorf("%q has the stats %v, want one record repeated and a crash", table.Name(), got)
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
		if _, err := table.Put(key("o", "2")); !errors.Is(err, lambdatest.ErrClosed) {
			t.Errorf("Put after Close is %v, want ErrClosed", err)
		}
		if got := table.Shards(); got != nil {
			t.Errorf("a closed table has the shards %q", got)
		}
	})
}

// A window's event names the shard, which other events of DynamoDB streams do not.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t, func(o *dynamodbstreamtest.Options) { o.TumblingWindow = time.Minute })
		c := changed(t)(table.Put(key("o", "1")))
		var payloads log[string]
		drain(t, table, lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
			payloads.add(string(payload))
			return []byte(`{"state":{"n":1}}`), nil
		}))
		want := `{"Records":[],"window":{"start":"2000-01-01T00:00:00Z","end":"2000-01-01T00:01:00Z"},"state":{"n":1},` +
			`"shardId":"` + c.ShardID + `","eventSourceARN":"` + table.ARN() + `","isFinalInvokeForWindow":true,` +
			`"isWindowTerminatedEarly":false}`
		if got := payloads.all(); len(got) != 2 || got[1] != want {
			t.Errorf("payloads are %q, want the second to be %s", got, want)
		}
	})
}
