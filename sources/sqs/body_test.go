package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/sources/sqs"
)

type order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// testBody sends one message with the body, and checks what the handler gets of it. With a wantErr the message fails
// before the handler, with an error that has these parts.
func testBody[T any](t *testing.T, body string, want T, wantErr ...string) {
	t.Helper()
	var logged logs
	ran := false
	h := newHandler(t, func(_ context.Context, m *sqs.Message[T]) error {
		ran = true
		if diff := cmp.Diff(want, m.Body, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%T of %q (-want +got):\n%s", want, body, diff)
		}
		if m.RawBody() != body {
			t.Errorf("raw body is %q, want %q", m.RawBody(), body)
		}
		return nil
	}, logged.option)
	if len(wantErr) == 0 {
		wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: body}))
		if !ran {
			t.Errorf("%T of %q: handler did not run", want, body)
		}
		return
	}
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: body}), "m1")
	if ran {
		t.Errorf("%T of %q: handler ran", want, body)
	}
	for _, part := range wantErr {
		if text := logged.Failure(t, "m1").Error; !strings.Contains(text, part) {
			t.Errorf("%T of %q: error is %q, want %q in it", want, body, text, part)
		}
	}
}

func TestBodyPassedThrough(t *testing.T) {
	for _, body := range []string{"", "x", "null", "日本 \"\\ \n\u2028", `{"id":1}`, " {} ", strings.Repeat("x", 100_000)} {
		testBody(t, body, body)
		testBody(t, body, append([]byte(nil), body...))
		testBody(t, body, append(json.RawMessage(nil), body...))
	}
}

func TestBodyJSON(t *testing.T) {
	one := 1
	testBody(t, `{"id":"1","amount":2}`, order{"1", 2})
	testBody(t, " {\"id\":\"1\"}\n", order{ID: "1"})
	testBody(t, `{"ID":"1","unknown":3}`, order{ID: "1"}) // any case, as with encoding/json
	testBody(t, `{"id":"1","id":"2"}`, order{ID: "2"})
	testBody(t, `{"id":"1"}`, &order{ID: "1"})
	testBody(t, `null`, (*order)(nil))
	testBody(t, `null`, map[string]int(nil))
	testBody(t, `null`, []int(nil))
	testBody(t, ` null `, any(nil))
	testBody(t, `1`, &one)
	testBody(t, `[1,2]`, []int{1, 2})
	testBody(t, `9007199254740993`, int64(9007199254740993))
	testBody(t, `{"a":null}`, map[string]any{"a": nil})
	testBody(t, `"2026-11-30T00:00:00Z"`, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
	testBody(t, `"AQI="`, [2]byte{}, "body of message \"m1\" is not a valid [2]uint8") // as with encoding/json
	testBody(t, `null`, nullable{true})
}

// nullable is a type that takes JSON null for a value.
type nullable struct{ IsNull bool }

func (n *nullable) UnmarshalJSON(data []byte) error {
	n.IsNull = string(data) == "null"
	return nil
}

// Null for a type that takes none leaves a zero value in encoding/json, and a handler would work with that.
func TestBodyUndecodable(t *testing.T) {
	isNull := `body of message "m1" is not a valid sqs_test.order: found null`
	testBody(t, `null`, order{}, isNull)
	testBody(t, " null\n", order{}, isNull)
	testBody(t, "null"+strings.Repeat(" ", 100), order{}, isNull)
	testBody(t, `null`, 0, "is not a valid int: found null")
	testBody(t, `null`, [1]int{}, "found null")
	testBody(t, ``, order{}, `body of message "m1" is not a valid sqs_test.order: `, "EOF")
	testBody(t, `{"id":`, order{}, `body of message "m1" is not a valid sqs_test.order: `, "EOF")
	testBody(t, `nul`, order{}, "is not a valid sqs_test.order: ")
	testBody(t, `null x`, order{}, "is not a valid sqs_test.order: ")
	testBody(t, `hello`, order{}, "is not a valid sqs_test.order: ", "'h'")
	testBody(t, `{"id":"1"} x`, order{}, "is not a valid sqs_test.order: ")
	testBody(t, `{"id":1}`, order{}, "is not a valid sqs_test.order: ", "string")
	testBody(t, `[]`, order{}, "is not a valid sqs_test.order: ")
	testBody(t, `300`, int8(0), "is not a valid int8: ")
}

// Case 6: one undecodable message fails alone.
func TestBodyUndecodableFailsAlone(t *testing.T) {
	eachWay(t, func(t *testing.T, options func(*sqs.Options)) {
		messages := numbered(3)
		messages[0].Body, messages[1].Body, messages[2].Body = `{"id":"1"}`, `{"id":`, `{"id":"3"}`
		ran := make(chan string, 3)
		h := newHandler(t, func(_ context.Context, m *sqs.Message[order]) error {
			ran <- m.Body.ID
			return nil
		}, options)
		wantFailures(t, t.Context(), h, event(messages...), "m2")
		close(ran)
		sum := 0
		for id := range ran {
			sum += int(id[0] - '0')
		}
		if sum != 1+3 {
			t.Errorf("sum of the IDs that ran is %d, want 1 + 3", sum)
		}
	})
}

// A decoder that keeps its input, changes it, fails or panics harms nobody but its own message.
func TestBodyDecode(t *testing.T) {
	type kept struct{ body []byte }
	decode := func(body []byte, v any) error {
		switch string(body) {
		case "m2":
			return errors.New("broken")
		case "m3":
			panic("no decoder")
		}
		k := v.(*kept)
		k.body = body
		return nil
	}
	for _, n := range []int{1, 10} {
		got := make(chan string, 10)
		h := newHandler(t, func(_ context.Context, m *sqs.Message[kept]) error {
			got <- string(m.Body.body)
			copy(m.Body.body, "##")
			if string(m.Body.body) != "##" || m.RawBody() == "##" {
				return fmt.Errorf("body is %q, raw body %q, want them apart", m.Body.body, m.RawBody())
			}
			return nil
		}, concurrency(n), func(o *sqs.Options) { o.Decode = decode })
		wantFailures(t, t.Context(), h, event(numbered(4)...), "m2", "m3")
		close(got)
		seen := map[string]bool{}
		for body := range got {
			seen[body] = true
		}
		if diff := cmp.Diff(map[string]bool{"m1": true, "m4": true}, seen); diff != "" {
			t.Errorf("bodies that ran (-want +got):\n%s", diff)
		}
	}
}

// A custom decoder is asked for bodies that are passed through otherwise, too.
func TestBodyDecodeOfString(t *testing.T) {
	h := newHandler(t, func(_ context.Context, m *sqs.Message[string]) error {
		if m.Body != "decoded m1" {
			return fmt.Errorf("body is %q", m.Body)
		}
		return nil
	}, func(o *sqs.Options) {
		o.Decode = func(body []byte, v any) error {
			*v.(*string) = "decoded " + string(body)
			return nil
		}
	})
	wantFailures(t, t.Context(), h, event(numbered(1)...))
}

// Bodies with broken UTF-8 do not come from SQS. They decode as with encoding/json, and nothing panics.
func TestBodyBrokenUTF8(t *testing.T) {
	record := strings.Replace(message{ID: "m1", Body: "@"}.record(), "@", "\xff\xfe", 1)
	for _, h := range []invoker{
		newHandler(t, func(_ context.Context, m *sqs.Message[string]) error { return wantText(m.Body) }),
		newHandler(t, func(_ context.Context, m *sqs.Message[[]byte]) error { return wantText(string(m.Body)) }),
		newHandler(t, func(_ context.Context, m *sqs.Message[string]) error { return wantText(m.RawBody()) }),
		newHandler(t, func(_ context.Context, m *sqs.Message[string]) error { return wantText(m.Raw().Body) }),
	} {
		wantFailures(t, t.Context(), h, rawEvent(record))
	}
}

func wantText(got string) error {
	if got != "\uFFFD\uFFFD" {
		return fmt.Errorf("body is %q", got)
	}
	return nil
}
