package jmespath_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/idempotency/jmespath"
)

func zip(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// The functions of Powertools, alone and as they are used together.
func TestPowertools(t *testing.T) {
	const inner = `{"id":"o1","n":9007199254740993,"list":[{"a":1},{"a":2}]}`
	limit := func(n int) func(*jmespath.Options) { return func(o *jmespath.Options) { o.MaxInflated = n } }
	for _, test := range []struct {
		expression, data string
		limit            int
		want             string
	}{
		{"powertools_json(data).id", inner, 0, "o1"},
		{"powertools_json(data).n", inner, 0, "json:9007199254740993"},
		{"powertools_json(data).[id, n]", inner, 0, "o1#json:9007199254740993"},
		{"powertools_json(data).list[?a == `2`] | [0].a", inner, 0, "json:2"},
		{"powertools_json(data)", `"text"`, 0, "text"},
		{"powertools_json(data)", `null`, 0, "key is missing"},
		{"powertools_json(data)", `{"a":1,"a":1}`, 0, "payload has two members of one name"},
		{"powertools_base64(data)", encode("größe"), 0, "größe"},
		{"powertools_base64(data)", "", 0, "key is missing"},
		{"powertools_json(powertools_base64(data)).id", encode(inner), 0, "o1"},
		{"powertools_base64(data)", "!", 0, "function powertools_base64: its argument is no base64: illegal base64 data at input byte 0"},
		{"powertools_base64(data)", "YQ", 0, "function powertools_base64: its argument is no base64"},
		{"powertools_base64(data)", encode("\xff"), 0, "function powertools_base64: its argument is no UTF-8 when it is decoded, want text"},
		{"powertools_json(powertools_base64_gzip(data)).id", zip(t, inner), 0, "o1"},
		{"powertools_base64_gzip(data)", zip(t, "12345"), 5, "12345"},
		{"powertools_base64_gzip(data)", zip(t, "123456"), 5,
			"function powertools_base64_gzip: its argument has more than 5 bytes when it is inflated, want no more than Options.MaxInflated"},
		{"powertools_base64_gzip(data)", zip(t, strings.Repeat("0", jmespath.DefaultMaxInflated+1)), 0, "its argument has more than 16777216 bytes"},
		{"powertools_base64_gzip(data)", zip(t, "\xff"), 0, "its argument is no UTF-8"},
		{"powertools_base64_gzip(data)", encode("no gzip at all"), 0, "function powertools_base64_gzip: its argument is no gzip: gzip: invalid header"},
		{"powertools_base64_gzip(data)", zip(t, inner)[:40], 0, "its argument is no gzip: unexpected EOF"},
		{"powertools_base64_gzip(data)", "\x00", 0, "function powertools_base64_gzip: its argument is no base64"},
	} {
		payload, err := json.Marshal(map[string]string{"data": test.data})
		if err != nil {
			t.Fatal(err)
		}
		got, err := jmespath.MustCompile(test.expression, limit(test.limit)).Key(payload)
		if err != nil {
			got = "error: " + err.Error()
		}
		if isError := strings.HasPrefix(got, "error: "); got != test.want && !(isError && strings.Contains(got, test.want)) {
			t.Errorf("%s of %.60q: got\n%q, want\n%q", test.expression, test.data, got, test.want)
		}
	}
}
