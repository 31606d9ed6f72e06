package payload

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for value, want := range map[string]string{
		`"a\u0062\n\"é"`: "ab\n\"é",
		`""`:             "",
		`"\ufffd"`:       "\ufffd",
		`"\ud83d\ude00"`: "😀",
		`{"a":"\u0062"}`: `{"a":"\u0062"}`,
		` 1`:             " 1",
		``:               "",
	} {
		got, err := Text(value)
		if string(got) != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", value, got, err, want)
		}
	}
	for _, broken := range []string{`"a\ud800"`, "\"a\xff\""} {
		if got, err := Text(broken); got != nil || err == nil || !strings.Contains(err.Error(), "it has broken UTF-8") {
			t.Errorf("%q: got %q, %v, want an error", broken, got, err)
		}
	}
}
