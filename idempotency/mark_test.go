package idempotency_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
)

// rewritingStore writes results anew, as a store does that keeps them as native values: members sorted, escapes resolved,
// spaces elsewhere.
type rewritingStore struct{ idempotency.MemoryStore }

func (s *rewritingStore) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(r.Data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(" ", " ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	r.Data = append([]byte("\n "), data.Bytes()...)
	return s.MemoryStore.Complete(ctx, r)
}

var long = strings.Repeat("a", 5000)

// What looks like a result in another form is a result like others: it replays as it is, whatever options it was stored with
// and is read with.
func TestMarkedResultReplays(t *testing.T) {
	results := newResults()
	options := map[string]func(*idempotency.Options){
		"default":   nil,
		"compress":  func(o *idempotency.Options) { o.Results = idempotency.ResultOptions{Compress: true, Store: results} },
		"elsewhere": func(o *idempotency.Options) { o.Results = idempotency.ResultOptions{Store: results, StoreOver: -1} },
		"both": func(o *idempotency.Options) {
			o.Results = idempotency.ResultOptions{Compress: true, Store: results, StoreOver: 200}
		},
	}
	read := func(o *idempotency.Options) { o.Results.Store = results }
	for _, result := range []string{
		`{"@oncekit":"gzip","data":"H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA=="}`,
		`{"@oncekit":"reference","data":"1"}`,
		`{"@oncekit":"json","data":{"@oncekit":"json","data":1}}`,
		`{"@oncekit":"reference"}`,
		`{"@oncekit":null}`,
		`{"@oncekit":"` + long + `"}`,
		`{"data":"1","@oncekit":"reference"}`,
		`{"\u0040oncekit":"reference","data":"1"}`,
		`{"@onceki\u0074":"reference","data":"1"}`,
		`{"@ONCEKIT":"reference","data":"1"}`,
		`{"a":{"@oncekit":"reference","data":"1"}}`,
		`[{"@oncekit":"reference","data":"1"}]`,
		`"{\"@oncekit\":\"reference\",\"data\":\"1\"}"`,
		`{"html":"\u003c` + long + `\u003e"}`,
		`"` + long + `"`,
		`null`, `""`, `{}`, `9007199254740993`,
	} {
		for name, option := range options {
			for store, check := range map[idempotency.Store]bool{idempotency.NewMemoryStore(): true, &rewritingStore{}: false} {
				_, err := idempotency.Do(t.Context(), newGuard(t, store, option), "k", returns(json.RawMessage(result), nil))
				wantErr(t, err)
				got, err := idempotency.Do(t.Context(), newGuard(t, store, read), "k", forbidden[json.RawMessage](t))
				if err != nil || !got.Replayed {
					t.Errorf("%s, %T: result is %.100s, replayed is %t, error is %v", name, store, result, got.Replayed, err)
				}
				if check {
					if diff := cmp.Diff(result, string(got.Value)); diff != "" {
						t.Errorf("%s: replay (-want +got):\n%s", name, diff)
					}
				} else if diff := cmp.Diff(value(t, result), value(t, string(got.Value))); diff != "" {
					t.Errorf("%s, rewritten: replay (-want +got):\n%s", name, diff)
				}
			}
		}
	}
}

func value(t *testing.T, text string) (v any) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Errorf("%.100q is no JSON: %v", text, err)
	}
	return v
}

// Whatever an object is made of, it is replayed, and never taken for another form of a result.
func TestMarkedResultProperty(t *testing.T) {
	names := rapid.SampledFrom([]string{"@oncekit", "data", "oncekit", "@", "<", "\u2028", `\`, `"@oncekit"`})
	values := rapid.SampledFrom([]any{"gzip", "reference", "json", "1", "", nil, true, map[string]any{"@oncekit": "json", "data": "x"}, long})
	rapid.Check(t, func(r *rapid.T) {
		want := rapid.MapOf(names, values).Draw(r, "result")
		write := func(o *idempotency.Options) { o.Results.Compress = rapid.Bool().Draw(r, "compress") }
		store := idempotency.NewMemoryStore()
		_, err := idempotency.Do(t.Context(), newGuard(t, store, write), "k", returns(want, nil))
		wantErr(t, err)
		got, err := idempotency.Do(t.Context(), newGuard(t, store), "k", forbidden[map[string]any](t))
		if diff := cmp.Diff(want, got.Value); diff != "" || err != nil {
			r.Errorf("error is %v; replay (-want +got):\n%s", err, diff)
		}
	})
}

// A result in a form that cannot be read is an error that says so, and its work is not done again.
func TestMarkedResultInvalid(t *testing.T) {
	for data, want := range map[string]string{
		`{"@oncekit":"zstd","data":"1"}`:             `its "@oncekit" is "zstd", want "gzip", "reference" or "json"`,
		`{"@oncekit":1,"data":"1"}`:                  `it has 2 members, and 1 as "@oncekit", want "@oncekit" and "data" alone`,
		`{"@oncekit":"gzip"}`:                        `it has 1 members, and "gzip" as "@oncekit", want "@oncekit" and "data" alone`,
		`{"@oncekit":"gzip","other":"1"}`:            `it has 2 members, and "gzip" as "@oncekit", want "@oncekit" and "data" alone`,
		`{"@oncekit":"json","data":"1","other":"1"}`: `it has 3 members, and "json" as "@oncekit", want "@oncekit" and "data" alone`,
		`{"@oncekit":"gzip","data":1}`:               `json: cannot unmarshal number into Go value of type string`,
		`{"@oncekit":"gzip","data":"%"}`:             `illegal base64 data at input byte 0`,
		`{"@oncekit":"gzip","data":"AAAA"}`:          `unexpected EOF`,
	} {
		got, err := replayOf(t, data)
		want = `idempotency: stored result is not valid: the work of "k" is done, but its result is in a form that cannot be read: ` + want
		if diff := cmp.Diff(want, errorText(err)); diff != "" || !got.Replayed || got.Value != nil {
			t.Errorf("%s: result is %+v; error (-want +got):\n%s", data, got, diff)
		}
		wantErr(t, err, idempotency.ErrResultInvalid)
	}
}

// replayOf returns what Do makes of data as a stored result.
func replayOf(t *testing.T, data string, optFns ...func(*idempotency.Options)) (idempotency.Result[any], error) {
	t.Helper()
	store := idempotency.NewMemoryStore()
	store.Plant("orders#k", idempotency.Entry{
		Status: idempotency.Completed, Expiry: time.Now().Add(time.Hour), Data: []byte(data)})
	return idempotency.Do(t.Context(), newGuard(t, store, optFns...), "k", forbidden[any](t))
}
