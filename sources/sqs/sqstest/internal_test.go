package sqstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
)

// The digests are what AWS answers for these attributes. The same vectors are in the tests of several emulators.
func TestMD5OfAttributes(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"timestamp", "1493147359900", "235c5c510d26fb653d073faed50ae77c"},
		{"timestamp", "1493147359901", "994258b45346a2cc3f9cbb611aa7af30"},
		{"SOME_Valid.attribute-Name", "1493147359900", "36655e7e9d7c0e8479fa3f3f42247ae7"},
	} {
		got := md5OfAttributes(map[string]events.SQSMessageAttribute{test.name: {StringValue: &test.value, DataType: "Number"}})
		if got != test.want {
			t.Errorf("digest of %s = %s is %s, want %s", test.name, test.value, got, test.want)
		}
	}
	binary := map[string]events.SQSMessageAttribute{"a": {BinaryValue: []byte("x"), DataType: "Binary"}}
	value := "x"
	str := map[string]events.SQSMessageAttribute{"a": {StringValue: &value, DataType: "Binary"}}
	if md5OfAttributes(binary) == md5OfAttributes(str) {
		t.Error("the digest of a binary value is that of no value, want another")
	}
}

func TestReadResponse(t *testing.T) {
	ids := []string{"a", "b", "c"}
	for _, test := range []struct {
		name, response string
		failed         []string
		err            string // what it contains; everything failed
	}{
		{name: "no bytes", response: ""},
		{name: "white space", response: " \n"},
		{name: "null", response: "null"},
		{name: "empty object", response: "{}"},
		{name: "empty list", response: `{"batchItemFailures":[]}`},
		{name: "null list", response: `{"batchItemFailures":null}`},
		{name: "one failure", response: `{"batchItemFailures":[{"itemIdentifier":"b"}]}`, failed: []string{"b"}},
		{name: "another key beside", response: `{"batchItemFailures":[{"itemIdentifier":"b","why":1}],"x":2}`, failed: []string{"b"}},
		{name: "twice the same", response: `{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"b"}]}`, failed: []string{"b"}},
		{name: "all", response: `{"batchItemFailures":[{"itemIdentifier":"c"},{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}`,
			failed: []string{"a", "b", "c"}},

		// Data loss, as on AWS.
		{name: "misspelt outer key", response: `{"batchItemsFailures":[{"itemIdentifier":"b"}]}`},
		{name: "outer key of another case", response: `{"BatchItemFailures":[{"itemIdentifier":"b"}]}`},
		{name: "another object", response: `{"statusCode":200}`},
		{name: "a string", response: `"done"`},
		{name: "a list", response: `[{"itemIdentifier":"b"}]`},

		{name: "not JSON", response: `{"batchItemFailures":[`, err: "not JSON"},
		{name: "trailing bytes", response: `{"batchItemFailures":[]}}`, err: "not JSON"},
		{name: "plain text", response: `done`, err: "not JSON"},
		{name: "list is an object", response: `{"batchItemFailures":{"itemIdentifier":"b"}}`, err: "must be a list or null"},
		{name: "empty identifier", response: `{"batchItemFailures":[{"itemIdentifier":""}]}`, err: `batchItemFailures[0] is`},
		{name: "null identifier", response: `{"batchItemFailures":[{"itemIdentifier":null}]}`, err: "non-empty itemIdentifier"},
		{name: "identifier is a number", response: `{"batchItemFailures":[{"itemIdentifier":1}]}`, err: "non-empty itemIdentifier"},
		{name: "wrong inner key", response: `{"batchItemFailures":[{"messageId":"b"}]}`, err: "non-empty itemIdentifier"},
		{name: "inner key of another case", response: `{"batchItemFailures":[{"ItemIdentifier":"b"}]}`, err: "non-empty itemIdentifier"},
		{name: "item is a string", response: `{"batchItemFailures":["b"]}`, err: "non-empty itemIdentifier"},
		{name: "item is null", response: `{"batchItemFailures":[null]}`, err: "non-empty itemIdentifier"},
		{name: "unknown identifier", response: `{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"d"}]}`,
			err: `batchItemFailures[1] names "d", which is not in the batch`},
		{name: "over 6 MB", response: `"` + strings.Repeat("x", maxPayload-1) + `"`, err: "has 6291457 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := readResponse([]byte(test.response), ids)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error is %v, want it to contain %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, id := range ids {
				if got[id] {
					failed = append(failed, id)
				}
			}
			if diff := cmp.Diff(test.failed, failed); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzReadResponse(f *testing.F) {
	f.Add([]byte(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`))
	f.Add([]byte(`{"batchItemFailures":[null,{}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, response []byte) {
		failed, err := readResponse(response, []string{"a", "b"})
		for id := range failed {
			if err != nil || id != "a" && id != "b" {
				t.Errorf("failed are %v with error %v, want identifiers of the batch or an error", failed, err)
			}
		}
	})
}

func TestPointNames(t *testing.T) {
	var got []string
	for m := range AfterInvoke + 2 {
		got = append(got, m.String())
	}
	for e := range TimedOut + 2 {
		got = append(got, e.String())
	}
	want := []string{"Moment(0)", "BeforeInvoke", "StoreCall", "StoreReply", "AtCheckpoint", "AfterInvoke", "Moment(6)",
		"Ending(0)", "answered", "function error", "panicked", "crashed", "timed out", "Ending(6)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestRandomly(t *testing.T) {
	decide := func(seedValue uint64, probability float64) (decisions []bool, yes int) {
		random := Randomly(seedValue, probability)
		for i := range 2000 {
			d := random(Point{Moment: StoreCall, Name: "Claim", Key: fmt.Sprint(i % 100)})
			decisions = append(decisions, d)
			if d {
				yes++
			}
		}
		return decisions, yes
	}
	one, yes := decide(1, .1)
	if yes < 120 || yes > 280 {
		t.Errorf("%d of 2000 decisions at probability 0.1 are true, want about 200", yes)
	}
	again, _ := decide(1, .1)
	if !cmp.Equal(one, again) {
		t.Error("seed 1 decides differently the second time")
	}
	if two, _ := decide(2, .1); cmp.Equal(one, two) {
		t.Error("seeds 1 and 2 decide alike")
	}
	if _, yes := decide(1, 0); yes != 0 {
		t.Errorf("%d decisions at probability 0 are true, want 0", yes)
	}
	if _, yes := decide(1, 1); yes != 2000 {
		t.Errorf("%d decisions at probability 1 are true, want 2000", yes)
	}
}

// Goroutines reach their points in any order. Each point's decision must not depend on it.
func TestRandomlyDoesNotDependOnOrder(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	forth, back := Randomly(7, .5), Randomly(7, .5)
	want, got := make(map[string]bool), make(map[string]bool)
	for i := range keys {
		want[keys[i]] = forth(Point{Moment: AtCheckpoint, Name: keys[i]})
		want[fmt.Sprint(i)] = forth(Point{Moment: AfterInvoke, Invocation: i})
		j := len(keys) - 1 - i
		got[keys[j]] = back(Point{Moment: AtCheckpoint, Name: keys[j]})
		got[fmt.Sprint(j)] = back(Point{Moment: AfterInvoke, Invocation: j})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

func TestSeedKeepsPartsApart(t *testing.T) {
	if seed(1).fraction("ab", "c") == seed(1).fraction("a", "bc") {
		t.Error(`"ab", "c" and "a", "bc" give the same fraction`)
	}
}
