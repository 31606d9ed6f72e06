package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

type item struct {
	ID    string `json:"id"`
	Count int    `json:"count"`
}

// keeping keeps the bytes that it is decoded from.
type keeping struct{ kept []byte }

func (k *keeping) UnmarshalJSON(data []byte) error { k.kept = data; return nil }

// decode decodes the text with a buffer that is overwritten afterwards, and returns what is in the value then.
func decode[T any](text string, custom func([]byte, any) error) (v T, err error) {
	d := NewDecoder[T](custom)
	data := []byte(text)
	err = d.Decode(data, &v)
	for i := range data {
		data[i] = '!'
	}
	return v, err
}

// testDecode decodes the text, and checks what it becomes: a value, or an error with that text.
func testDecode[T any](t *testing.T, text string, want any) {
	t.Helper()
	t.Run(fmt.Sprintf("%T of %.30q", *new(T), text), func(t *testing.T) {
		t.Helper()
		got, err := decode[T](text, nil)
		if wantErr, ok := want.(error); ok {
			if err == nil || !strings.Contains(err.Error(), wantErr.Error()) {
				t.Errorf("error is %v, want %q in it", err, wantErr)
			}
			return
		}
		if diff := cmp.Diff(want, any(got)); err != nil || diff != "" {
			t.Errorf("error is %v, value (-want +got):\n%s", err, diff)
		}
	})
}

func TestDecode(t *testing.T) {
	// As they are.
	testDecode[string](t, "any \xff text", "any \xff text")
	testDecode[string](t, "null", "null")
	testDecode[string](t, "", "")
	testDecode[[]byte](t, "any \xff bytes", []byte("any \xff bytes"))
	testDecode[[]byte](t, "", []byte{})
	testDecode[json.RawMessage](t, "not JSON", json.RawMessage("not JSON"))
	// By the rules of encoding/json.
	testDecode[item](t, `{"id":"a","count":2,"other":[1]}`, item{"a", 2})
	testDecode[item](t, `{"ID":"a","Count":2}`, item{"a", 2})
	testDecode[item](t, `{"id":"a","id":"b"}`, item{"b", 0})
	testDecode[item](t, "{\"id\":\"a\xff\"}", item{"a\uFFFD", 0})
	testDecode[*item](t, `{"id":"a"}`, &item{ID: "a"})
	testDecode[int64](t, "9007199254740993", int64(9007199254740993))
	testDecode[any](t, `{"a":[1,null]}`, map[string]any{"a": []any{1.0, nil}})
	testDecode[map[string]json.RawMessage](t, `{"a": [1, 2] }`, map[string]json.RawMessage{"a": json.RawMessage("[1, 2]")})
	testDecode[[][]byte](t, `["YWI="]`, [][]byte{[]byte("ab")})
	testDecode[[]string](t, `["one","two\u0041"]`, []string{"one", "twoA"})
	// null, where it is a value.
	testDecode[*item](t, "null", (*item)(nil))
	testDecode[map[string]int](t, " null\n", map[string]int(nil))
	testDecode[[]int](t, "null", []int(nil))
	testDecode[any](t, "null", any(nil))
	// And where it is none.
	testDecode[item](t, "null", errors.New("found null"))
	testDecode[int](t, " null\t", errors.New("found null"))
	testDecode[[1]int](t, "null", errors.New("found null"))
	testDecode[time.Time](t, "null", errors.New("found null"))
	testDecode[big.Int](t, "null", errors.New("found null"))
	testDecode[item](t, "nullx", errors.New("it is not JSON at offset"))
	testDecode[item](t, "null null", errors.New("it is not JSON at offset"))
	testDecode[item](t, "nul", errors.New("unexpected EOF"))

	testDecode[item](t, "", errors.New("EOF"))
	testDecode[item](t, `{"id":"a"`, errors.New("EOF"))
	testDecode[item](t, `{} {}`, errors.New("it is not JSON at offset 3"))
	testDecode[item](t, `{"count":"x"}`, errors.New("JSON string at offset 9 does not fit a Go int"))
	testDecode[item](t, `[]`, errors.New("does not fit a Go payload.item"))
}

// A type that decides about null itself is asked.
func TestDecodeNullByMethod(t *testing.T) {
	got, err := decode[keeping]("null", nil)
	if err != nil || string(got.kept) != "null" {
		t.Errorf("kept %q, error is %v, want null", got.kept, err)
	}
}

// Nothing of what is decoded is a part of the data: not for a type with a method that keeps them, nor for a custom function.
func TestDecodeKeepsNothing(t *testing.T) {
	if got, err := decode[keeping](`"text"`, nil); err != nil || string(got.kept) != `"text"` {
		t.Errorf("kept %q, error is %v", got.kept, err)
	}
	if got, err := decode[[]map[string]*keeping](`[{"a":"text"}]`, nil); err != nil || string(got[0]["a"].kept) != `"text"` {
		t.Errorf("kept %q, error is %v", got[0]["a"].kept, err)
	}
	var kept []byte
	custom := func(data []byte, v any) error {
		kept = data
		*v.(*int) = len(data)
		return nil
	}
	if got, err := decode[int]("12345", custom); err != nil || got != 5 || string(kept) != "12345" {
		t.Errorf("got %d, kept %q, error is %v, want what was given", got, kept, err)
	}
	// And the bytes of a value can be appended to.
	d := NewDecoder[[]byte](nil)
	data := []byte("abcdef")
	var v []byte
	if err := d.Decode(data[:3], &v); err != nil {
		t.Fatal(err)
	}
	if _ = append(v, 'X'); string(data) != "abcdef" {
		t.Errorf("data are %q after something was appended to the value", data)
	}
}

// The error of a custom function is its own, and that of a decoder is found in ours.
func TestDecodeErrors(t *testing.T) {
	own := errors.New("own error with data")
	if _, err := decode[int]("x", func([]byte, any) error { return own }); err != own {
		t.Errorf("error is %v, want %v", err, own)
	}
	_, err := decode[item](`{"count":"SECRET"}`, nil)
	if _, ok := errors.AsType[*jsonv2.SemanticError](err); !ok || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("error is %v, want a *json.SemanticError that does not show the data", err)
	}
	_, err = decode[item](`{"SECRET":,}`, nil)
	if _, ok := errors.AsType[*jsontext.SyntacticError](err); !ok || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("error is %v, want a *jsontext.SyntacticError that does not show the data", err)
	}
}

// A buffer is lent to one at a time.
func TestBuffer(t *testing.T) {
	a, b := Borrow(), Borrow()
	if a == b {
		t.Fatal("one buffer was lent to two")
	}
	*a = append((*a)[:0], "a"...)
	*b = append((*b)[:0], "b"...)
	if !bytes.Equal(*a, []byte("a")) {
		t.Errorf("buffer has %q, want a", *a)
	}
	Return(a)
	Return(b)
}
