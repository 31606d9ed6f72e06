package jmespath_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/jmespath"
)

// value draws JSON that is alike: of few strings, numbers and shapes, so that keys which can meet do.
func value(depth int) *rapid.Generator[string] {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "a#b", "a%23b", "1", "true", "null", "json:1", `json:"a"`, `["a","b"]`, `{"a":1}`, "%", "#", ""}),
		rapid.StringOfN(rapid.RuneFrom([]rune(`ab1#%":,[]{}`)), 0, 6, -1),
	)
	quoted := rapid.Map(text, func(s string) string { b, _ := json.Marshal(s); return string(b) })
	leaf := rapid.OneOf(quoted, rapid.SampledFrom([]string{"1", "1.0", "2", "9007199254740992", "9007199254740993", "true", "false", "null"}))
	if depth == 0 {
		return leaf
	}
	list := rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(s []string) string { return "[" + strings.Join(s, ",") + "]" })
	object := rapid.Map(value(depth-1), func(s string) string { return `{"a":` + s + `}` })
	return rapid.OneOf(leaf, list, object)
}

// Two payloads have one key exactly if the expression selects one value from both.
func TestKeyProperty(t *testing.T) {
	var expressions []*jmespath.Expression
	for _, text := range []string{"x", "[x]", "[x, y]", "[x, [y]]", "{a: x, b: y}", "x || y", "x && [y]", "x && y", "x[*]", "x[]", "x[*].[a]", "x.*", "x.[a]",
		"[[x], y] | [0]", "[x, y] | sort_by(@, &to_string(@))"} {
		expressions = append(expressions, jmespath.MustCompile(text))
	}
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(expressions).Draw(t, "expression")
		payload := func(label string) []byte {
			return []byte(`{"x":` + value(2).Draw(t, label+" x") + `,"y":` + value(1).Draw(t, label+" y") + `}`)
		}
		one, other := payload("one"), payload("other")
		key, err := e.Key(one)
		otherKey, otherErr := e.Key(other)
		if (err != nil && !errors.Is(err, idempotency.ErrKeyMissing)) || (err == nil && key == "") {
			t.Fatalf("key of %s is %q, %v", one, key, err)
		}
		if err != nil || otherErr != nil {
			return
		}
		selected, err := e.Fingerprint(one)
		if err != nil {
			t.Fatal(err)
		}
		otherSelected, err := e.Fingerprint(other)
		if err != nil {
			t.Fatal(err)
		}
		if (key == otherKey) != (selected == otherSelected) {
			t.Fatalf("keys of %s and %s by %v are %q and %q", one, other, e, key, otherKey)
		}
	})
}

// FuzzExpression checks that nothing panics or changes from one time to the next, whatever expression and payload are.
func FuzzExpression(f *testing.F) {
	for _, expression := range []string{
		"order_id", "[tenant, order_id]", "{a: n, b: map.*}", "lines[?qty > `1`].[sku, qty]", "map(&to_string(@), lines)", "group_by(lines, &sku)",
		"powertools_json(s)", "powertools_base64_gzip(powertools_base64(s))", "find_first(s, s, n, n)", "pad_left(s, n)", "lines[::-1] | [0:n]",
		"let $x = n in $x + $x // `0`", "split(s, '')", "sort(keys(@))", "zip(tags, lines)", "from_items(items(map))", "tags[9223372036854775807]",
		"tags[::9223372036854775807]", "tags[-9223372036854775808::-9223372036854775808]", "contains(lines, map)", "max_by(lines, &@)", "!n", "\"\\u0000\"", "`\"\"`",
	} {
		f.Add(expression, []byte(order))
	}
	f.Add("x", []byte("[1e400, \"\xff\"]"))
	f.Fuzz(func(t *testing.T, expression string, payload []byte) {
		if len(expression) > 1000 {
			return // the program's own, and the parser's recursion
		}
		e, err := jmespath.Compile(expression)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "jmespath: expression ") {
				t.Fatalf("%q: error is %v", expression, err)
			}
			return
		}
		for _, f := range []func([]byte) (string, error){e.Key, e.Fingerprint} {
			got, err := f(payload)
			again, errAgain := f(payload)
			if got != again || (err == nil) != (errAgain == nil) || (got == "") != (err != nil) {
				t.Fatalf("%q of %q: got %q, %v, and then %q, %v", expression, payload, got, err, again, errAgain)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "jmespath: expression ") {
				t.Fatalf("%q of %q: error is %v", expression, payload, err)
			}
		}
	})
}
