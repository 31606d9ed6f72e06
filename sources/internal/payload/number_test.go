package payload_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/internal/payload"
)

type numbered struct {
	N     json.Number
	Some  []json.Number
	Named map[string]*json.Number
	Self  *numbered
	Other string
}

// A json.Number is decoded as encoding/json does, wherever it stands.
func TestNumber(t *testing.T) {
	decoder := payload.NewDecoder[numbered](nil)
	for _, data := range []string{
		`{"N":1}`, `{"N":9007199254740993}`, `{"N":-1.50e+400}`, `{"N":"12.5"}`, `{"N":null}`, `{"N":""}`, `{"N":"x"}`, `{"N":" 1"}`,
		`{"N":"1 "}`, `{"N":"01"}`, `{"N":true}`, `{"N":[1]}`, `{"N":{}}`, `{"Some":[1,"2",3.0]}`, `{"Named":{"a":1,"b":null}}`,
		`{"Self":{"N":7,"Self":{"N":8}},"Other":"x"}`, `{"Other":1}`,
	} {
		var want, got numbered
		wantErr, gotErr := json.Unmarshal([]byte(data), &want), decoder.Decode([]byte(data), &got)
		if (wantErr == nil) != (gotErr == nil) {
			t.Errorf("%s: error is %v, want that of encoding/json: %v", data, gotErr, wantErr)
			continue
		}
		if diff := cmp.Diff(want, got); wantErr == nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", data, diff)
		}
	}
}

// A number of its own is as good a payload as any.
func TestNumberAlone(t *testing.T) {
	var n json.Number
	decoder := payload.NewDecoder[json.Number](nil)
	if err := decoder.Decode([]byte("18014398509481985"), &n); err != nil || n != "18014398509481985" {
		t.Errorf("decoded as %q with error %v, want the number as it stands", n, err)
	}
}
