package dynamodbstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Case 1: of several failures the answer names the first in the batch, by its sequence number, whatever the order of
// completion.
func TestAnswerNamesTheLowestFailure(t *testing.T) {
	eachWay(t, func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options)) {
		synctest.Test(t, func(t *testing.T) {
			w := &worker{errs: failing("r2", "r5", "r9")}
			w.work = func(_ context.Context, c *dynamodbstream.Change[order]) error {
				time.Sleep(time.Duration('9'-c.New.Note[1]) * time.Millisecond) // the later ones end first
				return nil
			}
			h := newHandler(t, w.handle, inOrder(isGuarded, options))
			wantCheckpoint(t, t.Context(), h, event(numbered(10)...), sequence(2))
			if isGuarded {
				w.want(t, "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9")
			} else {
				w.wantOrder(t, "r0", "r1", "r2")
			}
		})
	})
}

// Case 5: the bytes of the answer. That all failed is a list too, and a list has one entry.
func TestAnswerBytes(t *testing.T) {
	for _, test := range []struct {
		name    string
		records []record
		fail    []string
		want    string
	}{
		{"no records", nil, nil, `{"batchItemFailures":[]}`},
		{"success", numbered(2), nil, `{"batchItemFailures":[]}`},
		{"a failure", numbered(2), []string{"r1"}, `{"batchItemFailures":[{"itemIdentifier":"1405400000000002063200001"}]}`},
		{"all failed", numbered(2), []string{"r0", "r1"}, `{"batchItemFailures":[{"itemIdentifier":"1405400000000002063200000"}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options)) {
				w := &worker{errs: failing(test.fail...)}
				got, err := newHandler(t, w.handle, inOrder(isGuarded, options)).Invoke(t.Context(), event(test.records...))
				if err != nil || string(got) != test.want {
					t.Errorf("answer is %s, error is %v, want %s", got, err, test.want)
				}
			})
		})
	}
}

// The numbers have 3 to 25 digits. Input order decides: as text these compare otherwise.
func TestAnswerSequenceNumbersOfDifferentLengths(t *testing.T) {
	numbers := []string{"111", "9999", "10000", "300000000000000499659", "4421584500000000017450439091"}
	for first := range numbers {
		eachWay(t, func(t *testing.T, _ bool, options func(*dynamodbstream.Options)) {
			w := &worker{errs: map[string]error{}}
			var records []string
			for i, r := range numbered(len(numbers)) {
				records = append(records, r.change(sequence(i), numbers[i]))
				if i >= first {
					w.errs[r.Note] = errors.New("no")
				}
			}
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options, serial), rawEvent(records...), numbers[first])
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
		t.Run(fmt.Sprint(test.on, test.fail), func(t *testing.T) {
			eachWay(t, func(t *testing.T, _ bool, options func(*dynamodbstream.Options)) {
				w := &worker{errs: failing(test.fail...)}
				h := newHandler(t, w.handle, options, serial, errorOn(test.on))
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
		})
	}
}

// Case 11: a record that is twice in a batch runs once, and its failure is told once.
func TestAnswerSameRecordTwice(t *testing.T) {
	first, other := record{ID: "a", Note: "a", N: 1}, record{ID: "c", Note: "c", N: 2}
	eachWay(t, func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options)) {
		w := &worker{}
		wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), event(first, other, first), "")
		w.want(t, "a", "c")
		if isGuarded {
			w.errs = failing("a")
			first, other := record{ID: "a", Note: "a", N: 3}, record{ID: "c", Note: "c", N: 4}
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle, options), event(first, first, other), sequence(3))
			w.want(t, "a", "c")
		}
	})
}

// A failed change that cannot be named fails the whole invocation, after its siblings ran if they may. One that succeeds is
// done: nobody need name it.
func TestAnswerWithoutSequenceNumber(t *testing.T) {
	number := `"SequenceNumber":"` + sequence(1) + `",`
	for _, value := range []string{
		"", `"SequenceNumber":"",`, `"SequenceNumber":null,`, `"SequenceNumber":5,`, `"SequenceNumber":{},`, `"sequenceNumber":"1",`,
	} {
		t.Run(value, func(t *testing.T) {
			records := numbered(3)
			payload := rawEvent(records[0].json(), records[1].change(number, value), records[2].json())
			eachWay(t, func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options)) {
				w := &worker{errs: failing("r1")}
				h := newHandler(t, w.handle, inOrder(isGuarded, options))
				wantInvokeError(t, t.Context(), h, payload,
					"dynamodbstream: record 1 has no sequence number and failed, so the whole batch has to come back", "r1 fails")
				if isGuarded {
					w.want(t, "r0", "r1", "r2")
				}
				w.take()
				w.errs = nil
				wantCheckpoint(t, t.Context(), h, payload, "")
				if isGuarded {
					w.want(t, "r1")
				}
			})
		})
	}
}

// One that can be named before it names the place from which all comes back.
func TestAnswerBeforeOneWithoutSequenceNumber(t *testing.T) {
	records := numbered(2)
	payload := rawEvent(records[0].json(), records[1].change(`"SequenceNumber":"`+sequence(1)+`",`, ""))
	w := &worker{errs: failing("r0", "r1")}
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle, guarded(t)), payload, sequence(0))
	w.want(t, "r0", "r1")
}

// A number whose text was broken is none that Lambda knows. What it would do with one is not documented
// (https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html), so it is not reported.
func TestAnswerBrokenSequenceNumber(t *testing.T) {
	for _, broken := range []string{"1405\xff", `1405\ud800`} {
		w := &worker{errs: failing("r0")}
		payload := rawEvent(numbered(1)[0].change(`"SequenceNumber":"`+sequence(0), `"SequenceNumber":"`+broken))
		wantInvokeError(t, t.Context(), newHandler(t, w.handle), payload, "record 0 has no sequence number", "r0 fails")
	}
}

// Records of two streams cannot be told as failed by one place. That all are done is said, anything else is an error that
// names both.
func TestAnswerMixedStreams(t *testing.T) {
	mixed := numbered(3)
	mixed[1].ARN = otherARN
	for _, failed := range []string{"r0", "r1", "r2"} {
		eachWay(t, func(t *testing.T, isGuarded bool, options func(*dynamodbstream.Options)) {
			w := &worker{errs: failing(failed)}
			h := newHandler(t, w.handle, inOrder(isGuarded, options))
			wantInvokeError(t, t.Context(), h, event(mixed...), "dynamodbstream: event has records of stream", ordersARN, otherARN,
				"so the whole batch has to come back", failed+" fails")
			if isGuarded {
				w.want(t, "r0", "r1", "r2")
			}
			w.take()
			w.errs = nil
			wantCheckpoint(t, t.Context(), h, event(mixed...), "")
			if isGuarded {
				w.want(t, failed)
			} else {
				w.want(t, "r0", "r1", "r2")
			}
		})
	}
	// A record that does not say what stream it is of may be of the one that the others are of.
	w := &worker{errs: failing("r2")}
	records := numbered(3)
	payload := rawEvent(records[0].json(), records[1].change(`"eventSourceARN":"`+ordersARN+`"`, `"eventSourceARN":null`), records[2].json())
	wantCheckpoint(t, t.Context(), newHandler(t, w.handle), payload, sequence(2))
}

// What the payload's buffer is overwritten with afterwards is not seen by anyone.
func TestAnswerKeepsNothingOfThePayload(t *testing.T) {
	payload := event(record{ID: "a", Note: "note", N: 1})
	var kept *dynamodbstream.Change[order]
	var key string
	h := newHandler(t, func(_ context.Context, c *dynamodbstream.Change[order]) error { kept = c; return nil },
		guarded(t), dynamodbstream.KeyOf(func(c *dynamodbstream.Change[order]) string { key = c.New.Note; return key }))
	wantCheckpoint(t, t.Context(), h, payload, "")
	for i := range payload {
		payload[i] = '!'
	}
	got := []string{kept.New.Note, kept.Keys.ID, kept.ID(), kept.SequenceNumber(), kept.StreamARN(), key, kept.Raw().Change.NewImage["note"].String()}
	want := []string{"note", "a", eventID(1), sequence(1), ordersARN, "note", "note"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	if strings.Contains(kept.JSON(), "!") {
		t.Errorf("JSON is %s, want what was delivered", kept.JSON())
	}
}
