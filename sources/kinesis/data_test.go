package kinesis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/kinesis"
)

// testData sends data to a handler for T, and checks what it gets, or, where want is an error, the error.
func testData[T any](t *testing.T, data string, want any, optFns ...func(*kinesis.Options)) {
	t.Helper()
	t.Run(fmt.Sprintf("%T of %.30q", *new(T), data), func(t *testing.T) {
		t.Helper()
		for _, payload := range [][]byte{event(record{Data: data, Key: "k"}), event(record{Data: aggregateOf(data), Key: "p"})} {
			var failed errorHook
			var got any = "no run"
			h := newHandler(t, func(_ context.Context, r *kinesis.Record[T]) error { got = r.Data; return nil }, append(optFns, failed.option)...)
			response, err := h.Invoke(t.Context(), payload)
			if err != nil {
				t.Fatal(err)
			}
			if wantErr, ok := want.(error); ok {
				if got != "no run" || string(response) != answer(sequence(0)) {
					t.Errorf("data are %v, answer %s, want a failure", got, response)
				}
				wantError(t, failed.only(t), `kinesis: data of record "`+eventID(0), wantErr.Error())
			} else if diff := cmp.Diff(want, got); diff != "" || string(response) != answer("") {
				t.Errorf("answer %s, data (-want +got):\n%s", response, diff)
			}
		}
	})
}

func TestData(t *testing.T) {
	testData[string](t, "any\xfftext", "any\xfftext")
	testData[string](t, "", "")
	testData[[]byte](t, "any\xfftext", []byte("any\xfftext"))
	testData[[]byte](t, "", []byte{})
	testData[json.RawMessage](t, "no JSON", json.RawMessage("no JSON"))
	testData[click](t, `{"id":"c1","count":3,"other":null}`, click{"c1", 3})
	testData[click](t, ` {"ID":"c1"} `, click{"c1", 0}) // as encoding/json does
	testData[*click](t, `{"id":"c1"}`, &click{ID: "c1"})
	testData[*click](t, "null", (*click)(nil))
	testData[map[string]int](t, "null", map[string]int(nil))
	testData[any](t, `[1,"x"]`, []any{1.0, "x"})
	testData[int64](t, "9007199254740993", int64(9007199254740993))
	testData[click](t, "null", errors.New("are not a valid kinesis_test.click: found null"))
	testData[int](t, " null ", errors.New("found null"))
	testData[click](t, "", errors.New("are not a valid kinesis_test.click: "))
	testData[click](t, `{"id":`, errors.New("are not a valid kinesis_test.click: "))
	testData[click](t, `{"id":1}`, errors.New("JSON number at offset 6 does not fit a Go string"))
	testData[click](t, `{} {}`, errors.New("it is not JSON at offset 3"))
	testData[string](t, "anything", errors.New("decode says no"), func(o *kinesis.Options) {
		o.Decode = func([]byte, any) error { return errors.New("decode says no") }
	})
	testData[click](t, "c9", click{ID: "c9"}, func(o *kinesis.Options) {
		o.Decode = func(data []byte, v any) error { v.(*click).ID = string(data); return nil }
	})
}

// Data that are kept by a decoder, or by a type's own method, are not overwritten by the next record's.
func TestDataMayBeKept(t *testing.T) {
	var texts []string
	var records []record
	for i := range 50 {
		texts = append(texts, fmt.Sprintf(`"text %02d"`, i))
		records = append(records, record{Data: texts[i], Key: fmt.Sprint(i), N: i})
	}
	var decoded [][]byte
	h := newHandler(t, func(context.Context, *kinesis.Record[string]) error { return nil }, concurrency(1), func(o *kinesis.Options) {
		o.Decode = func(data []byte, _ any) error { decoded = append(decoded, data); return nil }
	})
	wantCheckpoint(t, t.Context(), h, event(records...), "")
	var methods [][]byte
	h2 := newHandler(t, func(_ context.Context, r *kinesis.Record[keeping]) error {
		methods = append(methods, r.Data.kept)
		return nil
	}, concurrency(1))
	wantCheckpoint(t, t.Context(), h2, event(records...), "")
	for _, kept := range [][][]byte{decoded, methods} {
		var got []string
		for _, k := range kept {
			got = append(got, string(k))
		}
		if diff := cmp.Diff(texts, got); diff != "" {
			t.Errorf("data that were kept (-want +got):\n%s", diff)
		}
	}
}

// keeping is a type that keeps the bytes it is decoded from.
type keeping struct{ kept []byte }

func (k *keeping) UnmarshalJSON(data []byte) error { k.kept = data; return nil }

// Data may be personal: the error of data that cannot be decoded shows none of its values and names.
func TestDataErrorsShowNothingOfTheData(t *testing.T) {
	synctest.Test(t, testDataErrors) // times in the log have no digits of the data
}

func testDataErrors(t *testing.T) {
	for _, data := range []string{
		`{"count":"SECRET"}`, `{"SECRET":1,}`, `"SECRET"`, `SECRET`, `{"SECRET" 4111}`, `{"id":"x"} SECRET`, `{"count":4111.5}`, `["SECRET"]`,
	} {
		for _, text := range []string{data, aggregateOf(data)} {
			var logged logs
			var failed errorHook
			h := newHandler(t, func(context.Context, *kinesis.Record[click]) error { return nil }, logged.option, failed.option)
			wantCheckpoint(t, t.Context(), h, event(record{Data: text, Key: "k"}), sequence(0))
			for _, shown := range []string{failed.only(t).Error(), logged.Text()} {
				if strings.Contains(shown, "SECRET") || strings.Contains(shown, "4111") {
					t.Errorf("%s: shows the data", shown)
				}
			}
		}
	}
	// Who wants to see more finds the decoder's error in it.
	var failed errorHook
	h := newHandler(t, func(context.Context, *kinesis.Record[click]) error { return nil }, failed.option)
	wantCheckpoint(t, t.Context(), h, event(record{Data: `{"count":"x"}`, Key: "k"}), sequence(0))
	if _, ok := errors.AsType[*jsonv2.SemanticError](failed.only(t)); !ok {
		t.Errorf("error is %v, want a *json.SemanticError in it", failed[0])
	}
	// Nor does that of data that are no base64.
	failed = nil
	h = newHandler(t, func(context.Context, *kinesis.Record[click]) error { return nil }, failed.option)
	wantCheckpoint(t, t.Context(), h, rawEvent(change(record{Data: "abc", Key: "k"}, "YWJj", "SECRET!!")), sequence(0))
	if err := failed.only(t); strings.Contains(err.Error(), "SECRET") {
		t.Errorf("error is %v: shows the data", err)
	}
}
