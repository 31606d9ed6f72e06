package lambdatest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestReadFailures(t *testing.T) {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := lambdatest.ReadFailures([]byte(test.response), ids)
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

func FuzzReadFailures(f *testing.F) {
	f.Add([]byte(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`))
	f.Add([]byte(`{"batchItemFailures":[null,{}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, response []byte) {
		failed, err := lambdatest.ReadFailures(response, []string{"a", "b"})
		for id := range failed {
			if err != nil || id != "a" && id != "b" {
				t.Errorf("failed are %v with error %v, want identifiers of the batch or an error", failed, err)
			}
		}
	})
}
