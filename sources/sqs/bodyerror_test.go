package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/sqs"
)

// strict is a payload whose decoding quotes what it finds.
type strict struct{}

func (s *strict) UnmarshalText(text []byte) error { return fmt.Errorf("%q is not strict", text) }

// quoting is another, and wraps an error of encoding/json.
type quoting struct{}

func (*quoting) UnmarshalJSON(data []byte) error {
	var n int
	return fmt.Errorf("decode %s: %w", data, json.Unmarshal(data, &n))
}

// personal is a payload of many types.
type personal struct {
	N    int
	I    int8
	F    float32
	B    bool
	When time.Time
	Map  map[string]int
	Int  map[int]string
	Byte []byte
	List []struct{ A [1]uint8 }
	S    strict
	Q    quoting
}

// errorHook is a hook that keeps the errors of records.
type errorHook map[string]error

func (f errorHook) OnRecordFinished(_ context.Context, r *batch.Result) { f[r.Record.ID] = r.Err }

// A body may be personal. The error of one that cannot be decoded, which goes to the log, says what it is and where, and
// shows none of its values and names. Who wants to see them finds the decoder's own error in it.
func TestBodyErrorsShowNothingOfTheBody(t *testing.T) {
	semantic, syntactic := new(*jsonv2.SemanticError), new(*jsontext.SyntacticError)
	for _, test := range []struct {
		body string
		as   any
		want string // in the error
	}{
		{`{"N":"SECRET"}`, semantic, "JSON string at offset 5 does not fit a Go int"},
		{`{"N": "SE\u0043RET"}`, semantic, "JSON string at offset 6 does not fit a Go int"},
		{`{"N":4111111111111111.5}`, semantic, "JSON number at offset 5 does not fit a Go int"},
		{`{"I":4111}`, semantic, "does not fit a Go int8"},
		{`{"F":4111e4111}`, semantic, "does not fit a Go float32"},
		{`{"B":"SECRET"}`, semantic, "does not fit a Go bool"},
		{`{"When":"SECRET"}`, new(*time.ParseError), "does not fit a Go time.Time"},
		{`{"When":"4111-11-31T00:00:00Z"}`, new(*time.ParseError), "does not fit a Go time.Time"},
		{`{"Map":{"SECRET":"4111"}}`, semantic, "JSON string at offset 17 does not fit a Go int"},
		{`{"Map":{"SECRET":[4111]}}`, semantic, "does not fit a Go int"},
		{`{"Int":{"SECRET":"x"}}`, semantic, "does not fit a Go int"},
		{`{"Byte":"SECRET!"}`, semantic, "does not fit a Go []uint8"},
		{`{"List":[{"A":[4111]}]}`, semantic, "does not fit a Go uint8"},
		{`{"S":"SECRET"}`, semantic, "does not fit a Go sqs_test.strict"},
		{`{"Q":"SECRET"}`, new(*json.UnmarshalTypeError), "does not fit a Go sqs_test.quoting"},
		{`"SECRET"`, semantic, "JSON string at offset 0 does not fit a Go sqs_test.personal"},
		{`["SECRET"]`, semantic, "does not fit a Go sqs_test.personal"},
		{`4111`, semantic, "does not fit a Go sqs_test.personal"},
		{`SECRET`, syntactic, "it is not JSON at offset 0"},
		{`{"SECRET":1,}`, syntactic, "it is not JSON at offset 11"},
		{`{"SECRET" 4111}`, syntactic, "it is not JSON at offset 10"},
		{`{"N":1} SECRET`, syntactic, "it is not JSON at offset 8"},
		{`{"SECRET":"4111`, syntactic, "it is not JSON at offset"},
		{`{"SECRET":tru4111}`, syntactic, "it is not JSON at offset"},
		{`{"SECRET":"\xSECRET"}`, syntactic, "it is not JSON at offset"},
		{`{"SECRET":-SECRET}`, syntactic, "it is not JSON at offset"},
	} {
		t.Run(test.body, func(t *testing.T) {
			var logged logs
			failed := errorHook{}
			ran := false
			h := newHandler(t, func(context.Context, *sqs.Message[personal]) error { ran = true; return nil }, logged.option,
				func(o *sqs.Options) { o.Hooks = []batch.Hook{failed} })
			wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: test.body}), "m1")
			if ran {
				t.Error("handler ran")
			}
			err := failed["m1"]
			prefix := `sqs: body of message "m1" is not a valid sqs_test.personal: `
			if text := fmt.Sprint(err); !strings.HasPrefix(text, prefix) || !strings.Contains(text, test.want) {
				t.Errorf("error is %q, want %q with %q", err, prefix, test.want)
			}
			for _, text := range []string{fmt.Sprint(err), logged.Text()} {
				text = measured.ReplaceAllString(text, "") // which may have any digits
				if strings.Contains(text, "SECRET") || strings.Contains(text, "4111") {
					t.Errorf("%s: shows the body", text)
				}
			}
			if !errors.As(err, test.as) {
				t.Errorf("error is %v, want a %T in it", err, test.as)
			}
		})
	}
}

// measured is what a log has of times.
var measured = regexp.MustCompile(`"(time":"[^"]*"|duration":\d+)`)

// What Options.Decode says is its author's own.
func TestBodyErrorsOfDecode(t *testing.T) {
	var logged logs
	h := newHandler(t, func(context.Context, *sqs.Message[personal]) error { return nil }, logged.option, func(o *sqs.Options) {
		o.Decode = func(body []byte, _ any) error { return fmt.Errorf("cannot read %s", body) }
	})
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: "this"}), "m1")
	const want = `sqs: body of message "m1" is not a valid sqs_test.personal: cannot read this`
	if got := logged.Failure(t, "m1").Error; got != want {
		t.Errorf("error is %q, want %q", got, want)
	}
}
