package jmespath_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/jmespath"
)

const order = `{"order_id":"o#1","tenant":"acme","n":1,"s":"1","big":9007199254740993,"price":19.90,"paid":true,"none":null,"empty":"",
	"tags":["web","first"],"no_tags":[],"void":{},"odd":"json:1",
	"lines":[{"sku":"b","qty":2},{"sku":"a","qty":10},{"sku":"","qty":0}],
	"map":{"z":1,"a":2,"m":{"y":"3","x":null}}}`

func TestKey(t *testing.T) {
	for _, test := range []struct{ expression, want string }{
		// Strings as they are, lists by JoinKey, others as JSON.
		{"order_id", "o#1"},
		{"s", "1"},
		{"n", "json:1"},
		{"price", "json:19.9"},
		{"paid", "json:true"},
		{"big", "json:9007199254740993"},
		{"odd", `json:"json:1"`},
		{"[tenant, order_id]", idempotency.JoinKey("acme", "o#1")},
		{"[order_id]", "o%231"},
		{"[tenant, n, s, odd]", `acme#json:1#1#json:"json:1"`},
		{"map.[z, m.y]", "json:1#3"},
		{"@ | [s, tags]", `1#json:["web","first"]`},
		{"let $o = order_id in [$o, s]", "o%231#1"},
		{"tags", `json:["web","first"]`},
		{"tags[*]", `json:["web","first"]`},
		{"tags[0]", "web"},
		{"[tenant, s][1]", "1"},
		{"{t: tenant, n: n}", `json:{"n":1,"t":"acme"}`},
		{"map", `json:{"a":2,"m":{"x":null,"y":"3"},"z":1}`}, // whose null is the payload's
		{"paid && [s, n]", `json:["1",1]`},
		{"none || [s, n]", `json:["1",1]`},
		{"none || order_id", "o#1"},
		{"lines[*].[sku, qty]", "missing"},
		{"lines[:2].[sku, qty]", `json:[["b",2],["a",10]]`},
		{"lines[*].sku", `json:["b","a",""]`}, // nobody promised them to be there
		{"n == `1`", "json:true"},
		{"paid && none == `null`", "json:true"},
		{"to_string(n)", "1"},
		{"to_string(big)", "9007199254740993"},
		{"`0` | @", "json:0"},
		{"`false` | @", "json:false"},
		// Missing: case 15.
		{"nothing", "missing"},
		{"none", "missing"},
		{"empty", "missing"},
		{"no_tags", "missing"},
		{"void", "missing"},
		{"nothing.[a, b]", "missing"},
		{"[nothing]", "missing"},
		{"[tenant, none]", "missing"},
		{"[tenant, empty]", "missing"},
		{"[tenant, no_tags]", "missing"},
		{"[tenant, void]", "missing"},
		{"[tenant, [s, none]]", "missing"},
		{"[tenant, {a: {b: none}}]", "missing"},
		{"{t: tenant, n: nothing}", "missing"},
		{"{t: tenant, n: [s, nothing]}", "missing"},
		{"@ | [tenant, nothing]", "missing"},
		{"[none] | [0]", "missing"},
		{"none || [s, none]", "missing"},
		{"[s, none] || tenant", "missing"},
		{"paid && [s, none]", "missing"},
		{"let $x = none in [s, $x]", "missing"},
		{"map.*.nothing", "missing"},
		{"lines[?qty > `100`].sku", "missing"},
		{"lines[?sku == 'a'].[sku, nothing]", "missing"},
		{"powertools_json(none)", "missing"},
		{"powertools_base64(none)", "missing"},
		{"powertools_base64_gzip(none)", "missing"},
		// Filters, and what would be in the order of Go's maps.
		{"lines[?qty > `1.5`].sku | [0]", "b"},
		{"lines[?price == `null`] | length(@)", "json:3"},
		{"@ | lines[?qty >= `10`].[sku, qty][]", `json:["a",10]`},
		{"map.*", `json:[2,{"x":null,"y":"3"},1]`},
		{"*.y", "missing"},
		{"*.*.y", `json:[["3"],[]]`}, // of map and void
		{"keys(map)", `json:["a","m","z"]`},
		{"values(map)", `json:[2,{"x":null,"y":"3"},1]`},
		{"items(map)[0]", `json:["a",2]`},
		{"to_string(map)", `{"a":2,"m":{"x":null,"y":"3"},"z":1}`},
		{"sort_by(lines, &qty)[*].qty", "json:[0,2,10]"},
		{"[sort_by(lines, &qty)[0].qty, lines[0].qty]", "json:0#json:2"}, // which are sorted elsewhere
		{"max_by(lines, &qty).sku", "a"},
		{"contains(tags, 'web')", "json:true"},
		{"contains(lines, lines[1])", "json:true"}, // the evaluator's own panics
		{"contains(tenant, 'cm')", "json:true"},
		{"contains(tenant, n)", "json:false"},
		{"type(big)", "number"},
		{"type(map)", "object"},
		{"type(none)", "null"},
		{"to_number('9007199254740993')", "json:9007199254740993"},
		{"to_number(s)", "json:1"},
		{"to_number(big)", "json:9007199254740993"},
		{"to_number(tenant)", "missing"},
		{"to_number(paid)", "missing"},
		{"join('-', tags)", "web-first"},
		{"replace(tenant, 'c', 'CC')", "aCCme"},
		{"pad_left(s, `3`, '0')", "001"},
		{"lower('ÄB')", "äb"},
		{"n + `0.5`", "json:1.5"},
		{"-n", "json:-1"},
		{"`-0.0` | @", "json:0"},
	} {
		key, err := jmespath.MustCompile(test.expression).Key([]byte(order))
		got := key
		if errors.Is(err, idempotency.ErrKeyMissing) && key == "" {
			got = "missing"
		} else if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: key (-want +got):\n%s", test.expression, diff)
		}
	}
}

// Numbers that float64 does not tell apart make different keys, and one number one key.
func TestKeyOfNumbers(t *testing.T) {
	e := jmespath.MustCompile("id")
	keys := map[string]string{}
	for want, payload := range map[string]string{
		"json:9007199254740992":        `{"id":9007199254740992}`,
		"json:9007199254740993":        `{"id":9007199254740993.0}`,
		"json:9007199254740994":        `{"id":9007199254740994}`,
		"json:-9007199254740993":       `{"id":-9007199254740993}`,
		"json:1152921504606846976":     `{"id":1152921504606846976}`, // 2^60, and the
		"json:1152921504606847000":     `{"id":1152921504606847000}`, // shortest digits of its float64
		"json:0.1":                     `{"id":1.0e-1}`,
		"json:0.1000000000000000055":   `{"id":0.1000000000000000055}`,
		"json:1e+400":                  `{"id":1e400}`,
		"json:1e-400":                  `{"id":1e-400}`,
		"json:0":                       `{"id":-0.0}`,
		"json:123456789012345":         `{"id":123456789012345}`,
		"json:1.7976931348623157e+308": `{"id":1.7976931348623157e308}`,
		"json:5e-324":                  `{"id":5e-324}`,
		"json:4.9e-324":                `{"id":4.9e-324}`, // the same float64
		"9007199254740993":             `{"id":"9007199254740993"}`,
	} {
		got, err := e.Key([]byte(payload))
		if got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", payload, got, err, want)
		}
		if other, ok := keys[got]; ok {
			t.Errorf("%s and %s have one key, %q", payload, other, got)
		}
		keys[got] = payload
	}
	// And compare with what they are, and with nothing else.
	const payload = `{"a":9007199254740993,"b":9007199254740993.0,"c":9007199254740992,"list":[{"id":9007199254740993,"n":5},{"id":2,"n":6.5}]}`
	for expression, want := range map[string]string{
		"a == b": "json:true", "a == c": "json:false", "a != c": "json:true", "contains([c, a], b)": "json:true",
		"list[?to_string(id) == '9007199254740993'].n | [0]": "json:5",
		"list[?id == $.a].n | [0]":                           "json:5",
		"list[?id > `1`].n":                                  "json:[6.5]",
		"list[?n > `5.5`].id | [0]":                          "json:2",
		"sum(list[*].n)":                                     "json:11.5",
	} {
		got, err := jmespath.MustCompile(expression).Key([]byte(payload))
		if got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", expression, got, err, want)
		}
	}
}

// Values of one expression that are close to one another, and make two keys all the same.
func TestKeysOfTwoValues(t *testing.T) {
	for _, test := range []struct{ expression, one, other string }{
		{"x", `{"x":"1"}`, `{"x":1}`},
		{"x", `{"x":"json:1"}`, `{"x":1}`},
		{"x", `{"x":"json:\"json:1\""}`, `{"x":"json:1"}`},
		{"x", `{"x":"true"}`, `{"x":true}`},
		{"x", `{"x":"a#b"}`, `{"x":["a","b"]}`},
		{"x", `{"x":["a#b"]}`, `{"x":["a","b"]}`},
		{"x", `{"x":["a"]}`, `{"x":"a"}`},
		{"x", `{"x":{"a":"b"}}`, `{"x":"{\"a\":\"b\"}"}`},
		{"[x, y]", `{"x":"a#b","y":"c"}`, `{"x":"a","y":"b#c"}`},
		{"[x, y]", `{"x":"1","y":2}`, `{"x":1,"y":"2"}`},
		{"[x, y]", `{"x":["a"],"y":"b"}`, `{"x":"a","y":"b"}`},
		{"[x, y]", `{"x":"a%23b","y":"c"}`, `{"x":"a#b","y":"c"}`},
		{"x && [y]", `{"x":false,"y":true}`, `{"x":true,"y":false}`},
		{"x || [y, y]", `{"x":"a#a","y":"a"}`, `{"x":null,"y":"a"}`},
		{"{a: x, b: y}", `{"x":1,"y":2}`, `{"x":2,"y":1}`},
	} {
		e := jmespath.MustCompile(test.expression)
		one, err := e.Key([]byte(test.one))
		other, otherErr := e.Key([]byte(test.other))
		if one == other || err != nil || otherErr != nil {
			t.Errorf("%s of %s and %s: keys are %q, %v, and %q, %v", test.expression, test.one, test.other, one, err, other, otherErr)
		}
	}
}

func TestFingerprint(t *testing.T) {
	for _, test := range []struct{ expression, want string }{
		{"@", order},
		{"tenant", `"acme"`},
		{"[s, n, none]", `["1",1,null]`},
		{"{b: big, a: price}", `{"a":19.9,"b":9007199254740993}`},
		{"nothing", "null"},
		{"none", "null"},
		{"empty", `""`},
	} {
		for _, hash := range []idempotency.Hash{idempotency.SHA256, idempotency.MD5} {
			want, err := hash.PayloadHash([]byte(test.want))
			if err != nil {
				t.Fatal(err)
			}
			e := jmespath.MustCompile(test.expression, nil, func(o *jmespath.Options) { o.Hash = hash })
			if got, err := e.Fingerprint([]byte(order)); got != want || err != nil {
				t.Errorf("%s: got %q, %v, want %q, the %v of %s", test.expression, got, err, want, hash, test.want)
			}
		}
	}
}

// What is wrong with a payload is an error of both, says so, and shows nothing of it.
func TestPayloadErrors(t *testing.T) {
	for _, test := range []struct{ expression, payload, want string }{
		{"id", "", "payload is empty, want JSON"},
		{"id", `{"id":`, "payload ends within a value"},
		{"id", `SECRET`, "payload is not JSON at offset 0"},
		{"id", `{"SECRET":1,"SECRET":2}`, "payload has two members of one name"},
		{"id", "{\"id\":\"SECRET\xff\"}", "payload is not valid UTF-8"},
		{"lower(id)", `{"id":["SECRET"]}`, "function lower: it fails for (array), want (string)"},
		{"lower(id)", `{}`, "function lower: it fails for (null), want (string)"},
		{"abs(id)", `{"id":9007199254740993}`, "function abs: it fails for (number beyond float64), want (number)"},
		{"max_by(a, &b)", `{"a":[{"b":"SECRET"},{"b":1}]}`, "function max_by: it fails for (array, expression), want (array, expref)"},
		{"pad_left(id, `-1`)", `{"id":"SECRET"}`, "function pad_left: it fails for (string, number), want (string, number, [string])"},
		{"powertools_json(id)", `{"id":"SECRET"}`, "function powertools_json: idempotency: payload is not JSON at offset 0"},
		{"powertools_json(id)", `{"id":{"a":"SECRET"}}`, "function powertools_json: it fails for (object), want (string)"},
		{"powertools_json(id)[?a]", `{"id":"SECRET"}`, "function powertools_json: idempotency: payload is not JSON"}, // the evaluator has null
		{"powertools_json(id)[]", `{"id":"SECRET"}`, "function powertools_json: idempotency: payload is not JSON"},
		{"powertools_json(id).*", `{"id":"SECRET"}`, "function powertools_json: idempotency: payload is not JSON"},
		{"id / `0`", `{"id":1}`, "it computes +Inf, want a number that JSON has"},
		{"[id % `0`]", `{"id":1}`, "it computes NaN, want a number that JSON has"},
		{"&id", `{}`, "it makes expression, want a value that JSON has"},
		{"find_first(id, 'E', `5`, `3`)", `{"id":"SECRET"}`, "it panicked: runtime error: slice bounds out of range"},
		{"$nothing", `{}`, "variable not defined"},
		{"pad_left(id, n)", `{"id":"SECRET","n":1e15}`, "function pad_left: its result has 1000000000000006 bytes, want no more than 16777216"},
		{"pad_right(id, n)", `{"id":"SECRET","n":16777211}`, "its result has 16777217 bytes, want no more than 16777216"},
		{"join(a, b)", `{"a":"` + strings.Repeat("s", 5000) + `","b":["` + strings.Repeat(`","`, 5000) + `"]}`, "function join: its result has"},
		{"replace(a, '', a)", `{"a":"` + strings.Repeat("s", 5000) + `"}`, "function replace: its result has"},
	} {
		e := jmespath.MustCompile(test.expression)
		for method, f := range map[string]func([]byte) (string, error){"Key": e.Key, "Fingerprint": e.Fingerprint} {
			got, err := f([]byte(test.payload))
			prefix := `jmespath: expression "` + test.expression + `": `
			if err == nil || got != "" || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(err.Error(), "SECRET") || errors.Is(err, idempotency.ErrKeyMissing) {
				t.Errorf("%s of %s and %.40s: got %q, error is\n%v, want\n%q in it", method, test.expression, test.payload, got, err, test.want)
			}
		}
	}
}

func TestCompileErrors(t *testing.T) {
	inflated := func(n int) func(*jmespath.Options) { return func(o *jmespath.Options) { o.MaxInflated = n } }
	for _, test := range []struct {
		expression string
		option     func(*jmespath.Options)
		want       string
	}{
		{"", nil, "Incomplete expression"},
		{"a.", nil, "SyntaxError"},
		{"a b", nil, "SyntaxError"},
		{"`{`", nil, ""},
		{"foo(a)", nil, `it calls function "foo", which does not exist`},
		{"a[?b == lenght(c)]", nil, `it calls function "lenght", which does not exist`},
		{"map(&lenght(@), a)", nil, `it calls function "lenght", which does not exist`},
		{"length()", nil, "function length is called with 0 arguments, want (string or array or object)"},
		{"length(a, b)", nil, "function length is called with 2 arguments, want (string or array or object)"},
		{"merge()", nil, "function merge is called with 0 arguments, want (object...)"},
		{"powertools_json(a, b)", nil, "function powertools_json is called with 2 arguments, want (any)"},
		{"a == `9007199254740993`", nil, "it has a number of 2^53 or more"},
		{"a == `[{\"b\": -1e300}]`", nil, "it has a number of 2^53 or more"},
		{"a", inflated(-1), "Options.MaxInflated is -1, want 0 (for 16777216) to 1073741824"},
		{"a", inflated(1<<30 + 1), "Options.MaxInflated is 1073741825, want"},
		{"a", func(o *jmespath.Options) { o.Hash = 9 }, "Options.Hash: idempotency: hash function is Hash(9), want SHA256"},
	} {
		e, err := jmespath.Compile(test.expression, test.option)
		if err == nil || e != nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "jmespath: expression ") {
			t.Errorf("%s: error is %v, want %q in it", test.expression, err, test.want)
		}
	}
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), "Incomplete expression") {
			t.Errorf("MustCompile panicked with %v, want the error", err)
		}
	}()
	jmespath.MustCompile("")
}

// An expression is used on many goroutines at once, and keeps the values in it as they are. The payload stays as it is.
func TestConcurrently(t *testing.T) {
	e := jmespath.MustCompile("[order_id, sort_by(`[{\"n\":3},{\"n\":1},{\"n\":2}]`, &n)[*].n, reverse(tags), keys(map), merge(map, `{\"z\":0}`).z]")
	const want = `o%231#json:[1,2,3]#json:["first","web"]#json:["a","m","z"]#json:0`
	payload := []byte(order)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if got, err := e.Key(payload); got != want || err != nil {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	group.Wait()
	if string(payload) != order {
		t.Error("the payload has changed")
	}
	if e.String() == "" {
		t.Error("an expression has no text")
	}
}

func BenchmarkKey(b *testing.B) {
	payload := []byte(`{"order_id":"o1","tenant":"acme","lines":[` + strings.Repeat(`{"sku":"sku-000001","quantity":2,"price":10.95,"gift":false,"note":"leave at the door, please"},`, 9) + `{}],"total":98.55}`)
	for _, expression := range []string{"order_id", "[tenant, order_id]", "lines[?quantity > `1`].sku"} {
		e := jmespath.MustCompile(expression)
		b.Run(expression, func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Key(payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
