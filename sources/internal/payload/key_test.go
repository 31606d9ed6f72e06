package payload

import (
	"strings"
	"testing"
)

type (
	valueKeyed   struct{ K string }
	pointerKeyed struct{ K string }
	keyless      struct{ K string }
)

func (v valueKeyed) IdempotencyKey() string    { return v.K }
func (p *pointerKeyed) IdempotencyKey() string { return p.K }

// testKey checks the key that a T names, or, where want begins with "error: ", the error.
func testKey[T any](t *testing.T, name string, keyOf any, v T, want string) {
	t.Helper()
	key, err := Key[T](keyOf)
	got := "none"
	if err != nil {
		got = "error: " + err.Error()
	} else if key != nil {
		got = key(&v)
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s: %s, want %s", name, got, want)
	}
}

func TestKey(t *testing.T) {
	testKey(t, "method on a value", nil, valueKeyed{"k"}, "k")
	testKey(t, "method on a value, by a pointer", nil, &valueKeyed{"k"}, "k")
	testKey(t, "method on a pointer", nil, pointerKeyed{"k"}, "k")
	testKey(t, "method on a pointer, by a pointer", nil, &pointerKeyed{"k"}, "k")
	testKey(t, "no method", nil, keyless{"k"}, "none")
	testKey(t, "text", nil, "k", "none")
	testKey(t, "function", func(v keyless) string { return "of " + v.K }, keyless{"k"}, "of k")
	testKey(t, "function before the method", func(v valueKeyed) string { return "of " + v.K }, valueKeyed{"k"}, "of k")
	testKey(t, "function of another type", func(string) string { return "" }, keyless{},
		"error: KeyOf has a func(string) string, want a func(payload.keyless) string")
	testKey(t, "function with an error", func(keyless) (string, error) { return "", nil }, keyless{},
		"error: KeyOf has a func(payload.keyless) (string, error), want a func(payload.keyless) string")
	testKey(t, "nil function", (func(keyless) string)(nil), keyless{}, "error: KeyOf has a nil function, want a func(payload.keyless) string")
	testKey(t, "no function", "key", keyless{}, "error: KeyOf has a string, want")
}
