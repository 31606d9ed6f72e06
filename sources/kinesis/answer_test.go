package kinesis_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// Cases 1 and 8: of several failures the answer names the first in the batch, by its sequence number, whatever the order of
// completion.
func TestAnswerNamesTheLowestFailure(t *testing.T) {
	eachWay(t, func(t *testing.T, isGuarded bool, options func(*kinesis.Options)) {
		synctest.Test(t, func(t *testing.T) {
			w := &worker{errs: failing("r2", "r5", "r9")}
			w.work = func(_ context.Context, r *kinesis.Record[string]) error {
				n, err := strconv.Atoi(strings.TrimPrefix(r.Data, "r"))
				time.Sleep(time.Duration(20-n) * time.Millisecond) // the later ones end first
				return err
			}
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), event(numbered(10)...), sequence(2))
			if isGuarded {
				w.want(t, "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9")
			}
		})
	})
}

// Case 7: without a guard a shard is serial and nothing behind a failure starts. With one, other partition keys go on, and
// what is finished does not run again.
func TestAnswerRedelivery(t *testing.T) {
	data := []string{"a0", "b1", "c2", "d3", "c4", "a5", "c6", "e7", "f8", "g9"}
	t.Run("without a guard", func(t *testing.T) {
		for _, n := range []int{0, 1} {
			w := &worker{errs: failing("c2")}
			h := newHandler(t, w.handle, concurrency(n))
			for range 3 {
				wantCheckpoint(t, t.Context(), h, event(keyed(data...)...), sequence(2))
				w.wantOrder(t, "a0", "b1", "c2")
			}
			w.errs = nil
			wantCheckpoint(t, t.Context(), h, event(keyed(data...)[2:]...), "")
			w.wantOrder(t, data[2:]...)
		}
	})
	for _, n := range []int{1, 2, 10} {
		t.Run("guard, concurrency "+strconv.Itoa(n), func(t *testing.T) {
			w := &worker{errs: failing("c2")}
			h := newHandler(t, w.handle, concurrency(n), guarded(t))
			wantCheckpoint(t, t.Context(), h, event(keyed(data...)...), sequence(2))
			w.want(t, "a0", "b1", "c2", "d3", "a5", "e7", "f8", "g9")
			wantCheckpoint(t, t.Context(), h, event(keyed(data...)[2:]...), sequence(2))
			w.want(t, "c2")
			w.errs = failing("c6")
			wantCheckpoint(t, t.Context(), h, event(keyed(data...)[2:]...), sequence(6))
			w.wantOrder(t, "c2", "c4", "c6")
			w.errs = nil
			wantCheckpoint(t, t.Context(), h, event(keyed(data...)[6:]...), "")
			w.wantOrder(t, "c6")
		})
	}
}

// Cases 5 and 9: the bytes of the answer. All failed is a list too, and the list has one entry.
func TestAnswerBytes(t *testing.T) {
	for _, test := range []struct {
		name    string
		records []record
		errs    map[string]error
		want    string
	}{
		{"no records", nil, nil, `{"batchItemFailures":[]}`},
		{"success", numbered(2), nil, `{"batchItemFailures":[]}`},
		{"a failure", numbered(2), failing("r1"),
			`{"batchItemFailures":[{"itemIdentifier":"49590338271490256608559692538361571095921575900000000001"}]}`},
		{"all failed", numbered(2), failing("r0", "r1"),
			`{"batchItemFailures":[{"itemIdentifier":"49590338271490256608559692538361571095921575900000000000"}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
				w := &worker{errs: test.errs}
				got, err := newHandler(t, w.handle, options).Invoke(t.Context(), event(test.records...))
				if err != nil || string(got) != test.want {
					t.Errorf("answer is %s, error is %v, want %s", got, err, test.want)
				}
			})
		})
	}
	if n := len(sequence(0)); n != 56 {
		t.Errorf("sequence numbers of tests have %d digits, want 56", n)
	}
}

// Case 8: input order decides. As text, and where lengths differ as numbers of one length, these compare otherwise.
func TestAnswerSequenceNumbersOfDifferentLengths(t *testing.T) {
	numbers := []string{"9", "10", "99999999999999999999", "49590338271490256608559692538361571095921575989136588898",
		"049590338271490256608559692538361571095921575989136588899"}
	for first := range numbers {
		eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
			w := &worker{errs: map[string]error{}}
			var records []string
			for i, r := range numbered(len(numbers)) {
				records = append(records, change(r, sequence(i), numbers[i]))
				if i >= first {
					w.errs[r.Data] = errors.New("no")
				}
			}
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), rawEvent(records...), numbers[first])
		})
	}
}

// Case 9: by option an error takes the place of the list.
func TestAnswerErrorOn(t *testing.T) {
	for _, test := range []struct {
		on   batch.ErrorOn
		fail []string
		err  bool
	}{
		{batch.ErrorOnNothing, []string{"r0", "r1"}, false},
		{batch.ErrorOnTotalFailure, nil, false},
		{batch.ErrorOnTotalFailure, []string{"r1"}, false},
		{batch.ErrorOnTotalFailure, []string{"r0", "r1"}, true},
		{batch.ErrorOnAnyFailure, nil, false},
		{batch.ErrorOnAnyFailure, []string{"r1"}, true},
	} {
		eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
			w := &worker{errs: failing(test.fail...)}
			h := newHandler(t, w.handle, options, func(o *kinesis.Options) { o.ErrorOn = test.on })
			if test.err {
				wantInvokeError(t, t.Context(), h, event(numbered(2)...), test.fail[0]+" fails")
				return
			}
			number := ""
			if len(test.fail) > 0 {
				number = sequence(int(test.fail[0][1] - '0'))
			}
			wantCheckpoint(t, t.Context(), h, event(numbered(2)...), number)
		})
	}
}

// Handle answers as Invoke does, and its list is empty, not null.
func TestAnswerOfHandle(t *testing.T) {
	w := &worker{errs: failing("r1")}
	h := newHandler(t, w.handle)
	var in events.KinesisEvent
	if err := json.Unmarshal(event(numbered(3)...), &in); err != nil {
		t.Fatal(err)
	}
	got, err := h.Handle(t.Context(), in)
	want := events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{{ItemIdentifier: sequence(1)}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error is %v, response (-want +got):\n%s", err, diff)
	}
	in.Records = in.Records[:1]
	got, err = h.Handle(t.Context(), in)
	want.BatchItemFailures = []events.KinesisBatchItemFailure{}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error is %v, response of success (-want +got):\n%s", err, diff)
	}
	if _, err = h.Handle(t.Context(), events.KinesisEvent{}); err == nil || !strings.Contains(err.Error(), "Records that are null") {
		t.Errorf("event without records: error is %v, want one that says so", err)
	}
}

// Case 11: a record that is twice in a batch runs once, and its failure is told once.
func TestAnswerSameRecordTwice(t *testing.T) {
	first := record{Data: "a", Key: "a", N: 1}
	moved := first
	moved.Key = "b" // cannot be, but the record's identity decides
	for _, again := range []record{first, moved} {
		eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
			w := &worker{}
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), event(first, record{Data: "c", Key: "c", N: 2}, again), "")
			w.want(t, "a", "c")
		})
		eachWay(t, func(t *testing.T, isGuarded bool, options func(*kinesis.Options)) {
			w := &worker{errs: failing("a")}
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options),
				event(first, again, record{Data: "c", Key: "c", N: 2}), sequence(1))
			if isGuarded {
				w.want(t, "a", "c")
			}
		})
	}
}

// A failed record that cannot be named fails the whole invocation, after its siblings ran if they may. One that succeeds
// is done: nobody need name it.
func TestAnswerWithoutSequenceNumber(t *testing.T) {
	for _, value := range []string{``, `"sequenceNumber":"",`, `"sequenceNumber":null,`, `"sequenceNumber":5,`, `"sequenceNumber":{},`} {
		t.Run(value, func(t *testing.T) {
			records := numbered(3)
			payload := rawEvent(records[0].json(), change(records[1], `"sequenceNumber":"`+sequence(1)+`"`,
				strings.TrimSuffix(value+`"x":0`, ",")), records[2].json())
			byPartitionKey := func(o *kinesis.Options) {
				o.Key = func(v kinesis.View) (string, error) { return v.PartitionKey(), nil }
			}
			for _, n := range []int{1, 10} {
				w := &worker{errs: failing("r1")}
				h := newHandler(t, w.handle, concurrency(n), guarded(t), byPartitionKey)
				wantInvokeError(t, t.Context(), h, payload,
					"kinesis: record 1 has no sequence number and failed, so the whole batch has to come back", "r1 fails")
				w.want(t, "r0", "r1", "r2")
				w.errs = nil
				wantCheckpoint(t, t.Context(), h, payload, "")
				w.want(t, "r1")

				w = &worker{errs: failing("r1")}
				h = newHandler(t, w.handle)
				wantInvokeError(t, t.Context(), h, payload, "kinesis: record 1 has no sequence number", "r1 fails")
				w.want(t, "r0", "r1")
				w.errs = nil
				wantCheckpoint(t, t.Context(), h, payload, "")
				w.want(t, "r0", "r1", "r2")
			}
		})
	}
}

// A number whose text was broken is none that Lambda knows. To report it is not defined, so it is not reported.
func TestAnswerBrokenSequenceNumber(t *testing.T) {
	for _, broken := range []string{"4959\xff", `4959\ud800`} {
		r := numbered(1)[0]
		text := strings.Replace(r.json(), `"sequenceNumber":"`+sequence(0), `"sequenceNumber":"`+broken, 1)
		w := &worker{errs: failing("r0")}
		wantInvokeError(t, t.Context(), newHandler(t, w.handle), rawEvent(text), "record 0")
	}
}

// Records of two shards cannot be told as failed by one place. All done is said, anything else is an error that names both.
func TestAnswerMixedShards(t *testing.T) {
	mixed := event(record{Data: "a0", Key: "a", N: 0}, record{Data: "b1", Key: "b", N: 1, Shard: otherShard}, record{Data: "c2", Key: "c", N: 2})
	eachWay(t, func(t *testing.T, isGuarded bool, options func(*kinesis.Options)) {
		for _, failed := range []string{"a0", "b1", "c2"} {
			w := &worker{errs: failing(failed)}
			h := newHandler(t, w.handle, options)
			wantInvokeError(t, t.Context(), h, mixed, "kinesis: ", shardID, otherShard, failed+" fails")
			if isGuarded {
				w.want(t, "a0", "b1", "c2")
				break // its siblings are done
			}
		}
		w := &worker{}
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), mixed, "")
	})
}

// The parent of a failed record of an aggregate is named, once, whichever of its records fail.
func TestAnswerOfAnAggregate(t *testing.T) {
	payload := event(record{Data: "a0", Key: "a", N: 0}, record{Data: aggregate("x1", "y2", "x3", "z4"), Key: "p", N: 1},
		record{Data: "y5", Key: "y", N: 2})
	for _, failed := range [][]string{{"x1"}, {"y2"}, {"z4"}, {"x1", "y2", "z4"}, {"x3", "y5"}} {
		eachWay(t, func(t *testing.T, _ bool, options func(*kinesis.Options)) {
			w := &worker{errs: failing(failed...)}
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), payload, sequence(1))
		})
	}
}

// What the payload's buffer is overwritten with afterwards is not seen by anyone.
func TestAnswerKeepsNothingOfThePayload(t *testing.T) {
	payload := event(record{Data: "abc", Key: "key", N: 1}, record{Data: aggregate("xyz"), Key: "p", N: 2})
	var kept []*kinesis.Record[[]byte]
	h := newHandler(t, func(_ context.Context, r *kinesis.Record[[]byte]) error { kept = append(kept, r); return nil })
	wantCheckpoint(t, t.Context(), h, payload, "")
	for i := range payload {
		payload[i] = '!'
	}
	var got []string
	for _, r := range kept {
		got = append(got, string(r.Data), string(r.RawData()), r.PartitionKey(), r.ID(), r.Raw().Kinesis.SequenceNumber)
	}
	want := []string{"abc", "abc", "key", eventID(1), sequence(1), "xyz", "xyz", "x", eventID(2) + "#0", sequence(2)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if text := base64.StdEncoding.EncodeToString([]byte("abc")); !strings.Contains(kept[0].JSON(), text) {
		t.Errorf("JSON is %s, want %q in it", kept[0].JSON(), text)
	}
}
