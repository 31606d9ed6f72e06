package kinesis_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/internal/kpl"
	"github.com/oncekit/oncekit/sources/kinesis"
)

func keepAggregates(o *kinesis.Options) { o.KeepAggregates = true }

// The records of an aggregate are records of their own: with their own partition keys, in the order of these together with
// other records, and with the aggregate's place and a number in it.
func TestAggregate(t *testing.T) {
	payload := event(record{Data: "x0", Key: "x", N: 0}, record{Data: aggregate("x1", "y1", "x2"), Key: "p", N: 1}, record{Data: "y3", Key: "y", N: 2})
	for _, n := range []int{1, 2, 10} {
		var mu sync.Mutex
		got := map[string][]string{}
		h := newHandler(t, func(_ context.Context, r *kinesis.Record[string]) error {
			mu.Lock()
			defer mu.Unlock()
			sub, aggregated := r.SubSequenceNumber()
			text := fmt.Sprint(r.Data, " ", r.ID(), " ", r.SequenceNumber() == sequence(1), " ", sub, " ", aggregated, " ", r.ShardID(), " ", r.StreamARN())
			got[r.PartitionKey()] = append(got[r.PartitionKey()], text)
			return nil
		}, concurrency(n), guarded(t))
		wantCheckpoint(t, t.Context(), h, payload, "")
		place := " " + shardID + " " + clicksARN
		want := map[string][]string{
			"x": {"x0 " + eventID(0) + " false 0 false" + place, "x1 " + eventID(1) + "#0 true 0 true" + place,
				"x2 " + eventID(1) + "#2 true 2 true" + place},
			"y": {"y1 " + eventID(1) + "#1 true 1 true" + place, "y3 " + eventID(2) + " false 0 false" + place},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("records by partition key (-want +got):\n%s", diff)
		}
	}
}

// By option an aggregate is one record, under its own partition key and its own key.
func TestAggregateKept(t *testing.T) {
	data := aggregate("x1", "y1")
	store := idempotency.NewMemoryStore()
	w := &worker{work: func(_ context.Context, r *kinesis.Record[string]) error {
		if _, aggregated := r.SubSequenceNumber(); aggregated || r.PartitionKey() != "p" || r.ID() != eventID(1) || r.Data != data {
			t.Errorf("record %q of %q is one of an aggregate: %v, want the aggregate itself", r.ID(), r.PartitionKey(), aggregated)
		}
		return nil
	}}
	h := newHandler(t, w.handle, withStore(t, store), keepAggregates)
	payload := event(record{Data: data, Key: "p", N: 1})
	wantCheckpoint(t, t.Context(), h, payload, "")
	w.wantOrder(t, data)
	// Its records have other keys.
	w = &worker{}
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle, withStore(t, store)), payload, "")
	w.want(t, "x1", "y1")
}

// When an aggregate comes again its finished records do not run.
func TestAggregateRedelivery(t *testing.T) {
	payload := event(record{Data: aggregate("x1", "y1", "x2", "z1"), Key: "p", N: 1}, record{Data: "z2", Key: "z", N: 2})
	for _, n := range []int{1, 2, 10} {
		w := &worker{errs: failing("x1", "z1")}
		h := newHandler(t, w.handle, concurrency(n), guarded(t))
		wantCheckpoint(t, t.Context(), h, payload, sequence(1))
		w.want(t, "x1", "y1", "z1")
		w.errs = failing("z1")
		wantCheckpoint(t, t.Context(), h, payload, sequence(1))
		w.want(t, "x1", "x2", "z1")
		w.errs = nil
		wantCheckpoint(t, t.Context(), h, payload, "")
		w.wantOrder(t, "z1", "z2")
		wantCheckpoint(t, t.Context(), h, payload, "")
		w.wantOrder(t)
	}
	// Without a guard all of it runs again.
	w := &worker{errs: failing("x2")}
	h := newHandler(t, w.handle)
	for range 2 {
		wantCheckpoint(t, t.Context(), h, payload, sequence(1))
		w.wantOrder(t, "x1", "y1", "x2")
	}
}

// withDigest returns an aggregate with the message.
func withDigest(message string) string {
	sum := md5.Sum([]byte(message))
	return "\xf3\x89\x9a\xc2" + message + string(sum[:])
}

// Case 37: what looks like an aggregate in part is a plain record. What is one, and broken inside,
// fails and says so. What is in front of it ran, and what is behind it waits, since that may be of its partition keys.
func TestAggregateLookAlikes(t *testing.T) {
	three := aggregate("x1", "y1", "x2")
	wrongDigest := three[:len(three)-1] + string(three[len(three)-1]^1)
	for _, test := range []struct {
		name, data string
		want       []string // the data that run
		err        string
	}{
		{"plain", "x", []string{"x"}, ""},
		{"empty", "", []string{""}, ""},
		{"three", three, []string{"x1", "y1", "x2"}, ""},
		{"magic alone", three[:4], []string{three[:4]}, ""},
		{"ten bytes that begin with the magic", three[:4] + "abcdef", []string{three[:4] + "abcdef"}, ""},
		{"wrong digest", wrongDigest, []string{wrongDigest}, ""},
		{"a byte behind it", three + "x", []string{three + "x"}, ""},
		{"a byte before it", "x" + three, []string{"x" + three}, ""},
		{"no records", aggregate(), nil, ""},
		{"no records, but a key", withDigest("\n\x01a"), nil, ""},
		{"key index out of range", withDigest("\n\x01a\x1a\x05\b\x05\x1a\x01z"), nil, "partition_key_index is 5, want less than 1"},
		{"a good record before a bad one", withDigest("\n\x01a\x1a\x05\b\x00\x1a\x01z\x1a\x05\b\x05\x1a\x01z"), nil, "partition_key_index is 5"},
		{"cut off", withDigest("\n\x01a\x1a\xff\xff\xff\x7f"), nil, "want at most the 0 that are left"},
		{"no message", withDigest("not a message"), nil, "wire type"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
				var failed errorHook
				w := &worker{}
				payload := event(record{Data: "before", Key: "b"}, record{Data: test.data, Key: "p", N: 1}, record{Data: "after", Key: "c", N: 2})
				want := append([]string{"before"}, test.want...)
				number := ""
				if test.err == "" {
					want = append(want, "after")
				} else { // what is behind it may be of any of its partition keys
					number = sequence(1)
				}
				h := newHandler(t, w.handle, options, failed.option)
				wantCheckpoint(t, t.Context(), h, payload, number)
				w.want(t, want...)
				if test.err != "" {
					wantError(t, failed.only(t), `kinesis: record "`+eventID(1)+`" is a KPL aggregate that is broken: kpl: `, test.err)
				}
				w.take()
				h = newHandler(t, w.handle, options, keepAggregates)
				wantCheckpoint(t, t.Context(), h, event(record{Data: test.data, Key: "p", N: 3}), "")
				w.wantOrder(t, test.data)
			})
		})
	}
}

// A batch of nothing but empty aggregates is done.
func TestAggregateOfNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
		w := &worker{}
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), event(record{Data: aggregate(), Key: "p"}), "")
		w.want(t)
	})
}

// Nothing that a handler gets of one record is a part of another, or of what the next call of a method returns.
func TestAggregateSharesNoBytes(t *testing.T) {
	texts := []string{"a-one", "b-two", "c-three"}
	var views []kinesis.View
	data := map[string][]byte{}
	h := newHandler(t, func(_ context.Context, r *kinesis.Record[[]byte]) error {
		_ = append(r.Data, "!!!!!!!!!!!!"...)
		for _, raw := range [][]byte{r.RawData(), r.Raw().Kinesis.Data} {
			_ = append(raw, "????????????"...)
			for i := range raw {
				raw[i] = '?'
			}
		}
		if got := string(r.Data); got != string(r.RawData()) || !slices.Contains(texts, got) {
			t.Errorf("data are %q, raw %q, want one of %q", r.Data, r.RawData(), texts)
		}
		for i := range r.Data {
			r.Data[i] = '!'
		}
		views = append(views, r.View)
		data[r.ID()] = r.Data
		return nil
	}, concurrency(1))
	aggregated := aggregate(texts...)
	wantCheckpoint(t, t.Context(), h, event(record{Data: aggregated, Key: "p"}), "")
	for i, v := range views {
		if string(v.RawData()) != texts[i] || string(data[v.ID()]) != strings.Repeat("!", len(texts[i])) {
			t.Errorf("record %d has %q, and its data are %q, want %q and what the handler made of it", i, v.RawData(), data[v.ID()], texts[i])
		}
		if !bytes.Equal(v.Raw().Kinesis.Data, []byte(aggregated)) {
			t.Errorf("Raw of record %d has %q, want the aggregate", i, v.Raw().Kinesis.Data)
		}
	}
}

// JSON of a record of an aggregate is that of the record alone, with what came with the aggregate.
func TestAggregateJSON(t *testing.T) {
	data := string(kpl.Append(nil, []kpl.UserRecord{{PartitionKey: `k"1`, Data: []byte("<x>\xff")}, {PartitionKey: "k2"}}))
	var got []map[string]any
	h := newHandler(t, func(_ context.Context, r *kinesis.Record[[]byte]) error {
		var m map[string]any
		if err := json.Unmarshal([]byte(r.JSON()), &m); err != nil {
			t.Errorf("JSON is %s: %v", r.JSON(), err)
		}
		got = append(got, m)
		return nil
	})
	parent := record{Data: data, Key: "p", N: 1}
	wantCheckpoint(t, t.Context(), h, event(parent), "")
	var want []map[string]any
	for i, key := range []string{`k"1`, "k2"} {
		var m map[string]any
		if err := json.Unmarshal([]byte(parent.json()), &m); err != nil {
			t.Fatal(err)
		}
		inner := m["kinesis"].(map[string]any)
		inner["partitionKey"], inner["data"], inner["subSequenceNumber"] = key, encode([]string{"<x>\xff", ""}[i]), float64(i)
		inner["approximateArrivalTimestamp"] = got[i]["kinesis"].(map[string]any)["approximateArrivalTimestamp"]
		want = append(want, m)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// Keys that are no UTF-8, and empty ones, are lanes and nothing more.
func TestAggregateOddPartitionKeys(t *testing.T) {
	var records []kpl.UserRecord
	for i, key := range []string{"\xff", "\xff", "", "", "\x00shard"} {
		records = append(records, kpl.UserRecord{PartitionKey: key, Data: fmt.Append(nil, i)})
	}
	for _, n := range []int{1, 10} {
		w := &worker{}
		h := newHandler(t, w.handle, concurrency(n), guarded(t))
		wantCheckpoint(t, t.Context(), h, event(record{Data: string(kpl.Append(nil, records)), Key: "p"}), "")
		w.want(t, "0", "1", "2", "3", "4")
	}
}

// Where the event says no eventID, the records of an aggregate are told apart all the same: none passes for another.
func TestAggregateWithoutAnEventID(t *testing.T) {
	data := aggregate("x", "y", "z")
	payload := rawEvent(change(record{Data: data, Key: "p"}, `"eventID":"`+eventID(0)+`",`, ""))
	noKey := func(o *kinesis.Options) { o.Key = func(kinesis.View) (string, error) { return "", nil } }
	for name, options := range map[string][]func(*kinesis.Options){
		"no guard": nil, "guard that lets records run unprotected": {guarded(t, unprotected), noKey},
	} {
		t.Run(name, func(t *testing.T) {
			var ids []string
			note := func(next batch.Handler) batch.Handler {
				return func(ctx context.Context, r *batch.Record) error {
					ids = append(ids, r.ID)
					return next(ctx, r)
				}
			}
			w := &worker{}
			h := newHandler(t, w.handle, append(options, func(o *kinesis.Options) { o.Middleware = []batch.Middleware{note} })...)
			wantCheckpoint(t, t.Context(), h, payload, "")
			w.wantOrder(t, "x", "y", "z")
			if diff := cmp.Diff(slices.Compact(slices.Sorted(slices.Values(ids))), ids); diff != "" {
				t.Errorf("IDs of the records, each once (-want +got):\n%s", diff)
			}
			// By the types of aws-lambda-go, of which a test sets what it needs.
			in := events.KinesisEvent{Records: []events.KinesisEventRecord{
				{Kinesis: events.KinesisRecord{SequenceNumber: "1", PartitionKey: "p", Data: []byte(data)}},
			}}
			got, err := h.Handle(t.Context(), in)
			want := events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{}}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error is %v, response (-want +got):\n%s", err, diff)
			}
			w.wantOrder(t, "x", "y", "z")

			var taken []string
			w = &worker{errs: map[string]error{"x": batch.Permanent(errors.New("never"))}}
			h = newHandler(t, w.handle, append(options, func(o *kinesis.Options) {
				o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
					taken = append(taken, r.Value.(*kinesis.Record[string]).Data)
					return nil
				}
			})...)
			wantCheckpoint(t, t.Context(), h, payload, "")
			w.wantOrder(t, "x", "y", "z")
			if diff := cmp.Diff([]string{"x"}, taken); diff != "" {
				t.Errorf("records in the sink (-want +got):\n%s", diff)
			}
		})
	}
}

// A record of an aggregate that comes back by itself, from a dead-letter queue, is the record that it was: it has its key,
// and not one that it shares with the others of its aggregate.
func TestAggregateMemberHandedBack(t *testing.T) {
	clicks := string(kpl.Append(nil, []kpl.UserRecord{{PartitionKey: "x", Data: []byte("x")}, {PartitionKey: "y", Data: []byte("y")}}))
	var letters []string
	keep := newHandler(t, func(_ context.Context, r *kinesis.Record[string]) error {
		letters = append(letters, r.JSON())
		return nil
	})
	wantCheckpoint(t, t.Context(), keep, event(record{Data: clicks, Key: "a"}), "")

	seen := map[string][]any{}
	w := &worker{work: func(_ context.Context, r *kinesis.Record[string]) error {
		n, aggregated := r.SubSequenceNumber()
		seen[r.Data] = []any{r.ID(), r.PartitionKey(), r.SequenceNumber(), n, aggregated, string(r.RawData())}
		return nil
	}}
	h := newHandler(t, w.handle, guarded(t))
	wantCheckpoint(t, t.Context(), h, rawEvent(letters[1]), "")
	w.want(t, "y")
	if diff := cmp.Diff([]any{eventID(0) + "#1", "y", sequence(0), 1, true, "y"}, seen["y"]); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	wantCheckpoint(t, t.Context(), h, rawEvent(letters[0]), "")
	w.want(t, "x")
	// All of it has run, by whatever way it comes.
	wantCheckpoint(t, t.Context(), h, event(record{Data: clicks, Key: "a"}), "")
	wantCheckpoint(t, t.Context(), h, rawEvent(letters...), "")
	w.want(t)

	for _, number := range []string{`-1`, `1.5`, `"1"`, `null`, `{}`, `99999999999`} {
		broken := strings.Replace(letters[0], `"subSequenceNumber":0`, `"subSequenceNumber":`+number, 1)
		var failed errorHook
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, failed.option), rawEvent(broken), sequence(0))
		w.want(t)
		wantError(t, failed.only(t), "subSequenceNumber", "want a number from 0")
	}
}
