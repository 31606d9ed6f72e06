package idempotency_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
)

func hashed(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "orders#sha256:" + hex.EncodeToString(sum[:])
}

// Rule 6: the key as it is stored.
func TestStoredKey(t *testing.T) {
	const room = idempotency.MaxKeyLength - len("orders#")
	hash := "sha256:" + strings.Repeat("0", 64)
	for _, test := range []struct {
		name, key string
		hash      bool
		want      string
	}{
		{"plain", "order-1", false, "orders#order-1"},
		{"separator", "a#b", false, "orders#a#b"},
		{"separators alone", "##", false, "orders###"},
		{"not ASCII", "größe", false, "orders#größe"},
		{"space and control", " \x00\n", false, "orders# \x00\n"},
		{"longest", strings.Repeat("k", room), false, "orders#" + strings.Repeat("k", room)},
		{"one byte too long", strings.Repeat("k", room+1), false, hashed(strings.Repeat("k", room+1))},
		{"longest of two-byte letters", strings.Repeat("ö", room/2), false, "orders#" + strings.Repeat("ö", room/2)},
		{"two-byte letters, a byte too long", strings.Repeat("ö", room/2+1), false, hashed(strings.Repeat("ö", room/2+1))},
		{"hashes wanted", "jane@example.com", true, hashed("jane@example.com")},
		{"hashes wanted, long", strings.Repeat("k", 5000), true, hashed(strings.Repeat("k", 5000))},
		{"looks like a hash", hash, false, hashed(hash)},
		{"begins like a hash", "sha256:", false, hashed("sha256:")},
		{"all but begins like a hash", "SHA256:0", false, "orders#SHA256:0"},
		{"invalid UTF-8", "a\xff", false, hashed("a\xff")},
		{"replacement character", "a\ufffd", false, "orders#a\ufffd"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &faultStore{}
			g := newGuard(t, store, func(o *idempotency.Options) { o.HashKeys = test.hash })
			for range 2 { // the same key the second time
				_, err := idempotency.Do(t.Context(), g, test.key, returns(0, nil))
				wantErr(t, err)
			}
			got := []string{store.claims[0].Key, store.completes[0].Key, store.claims[1].Key}
			if diff := cmp.Diff(slices.Repeat([]string{test.want}, 3), got); diff != "" {
				t.Errorf("key of claim, completion and replay (-want +got):\n%s", diff)
			}
			if len(got[0]) > idempotency.MaxKeyLength {
				t.Errorf("stored key has %d bytes, want at most %d", len(got[0]), idempotency.MaxKeyLength)
			}
		})
	}
}

// Rule 6: a release names the same key as its claim.
func TestReleasedKey(t *testing.T) {
	store := &faultStore{}
	_, err := idempotency.Do(t.Context(), newGuard(t, store), "a\xff", returns(0, errThrottled))
	wantErr(t, err, errThrottled)
	if got := store.releases[0].Key; got != hashed("a\xff") {
		t.Errorf("key of the release is %q, want %q", got, hashed("a\xff"))
	}
}

// Rule 14: one key in two namespaces is two.
func TestNamespacesAreApart(t *testing.T) {
	store := idempotency.NewMemoryStore()
	for _, namespace := range []string{"orders", "orders-v2", "Orders"} {
		g, err := idempotency.New(namespace, store)
		wantErr(t, err)
		got, err := idempotency.Do(t.Context(), g, "k", returns(namespace, nil))
		if want := (idempotency.Result[string]{Value: namespace}); got != want || err != nil {
			t.Errorf("result is %+v, error is %v, want %+v", got, err, want)
		}
	}
}

func TestJoinKey(t *testing.T) {
	for _, test := range []struct {
		parts []string
		want  string
	}{
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a#b"},
		{[]string{"a", "b", "c"}, "a#b#c"},
		{[]string{"a#b"}, "a%23b"},
		{[]string{"a%23b"}, "a%2523b"},
		{[]string{"100%", "#"}, "100%25#%23"},
		{[]string{"", "b"}, ""},
		{[]string{"a", ""}, ""},
		{[]string{"a", "", "c"}, ""},
		{[]string{"größe", " "}, "größe# "},
		{[]string{"\xff", "a"}, "\xff#a"},
	} {
		if got := idempotency.JoinKey(test.parts...); got != test.want {
			t.Errorf("JoinKey(%q) is %q, want %q", test.parts, got, test.want)
		}
	}
}

// Rule 6: no two tuples make one key, also among those that are hard to tell apart.
func TestJoinKeyIsInjective(t *testing.T) {
	part := rapid.OneOf(
		rapid.StringMatching(`[ab#%235]{1,5}`),
		rapid.SampledFrom([]string{"#", "%", "%23", "%25", "%2523", "a#", "#a", "##", "\xff"}),
		rapid.StringN(1, 4, -1))
	tuple := rapid.SliceOfN(part, 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		a := tuple.Draw(t, "a")
		b := rapid.OneOf(tuple, regrouped(a)).Draw(t, "b")
		keyA, keyB := idempotency.JoinKey(a...), idempotency.JoinKey(b...)
		if (keyA == keyB) != slices.Equal(a, b) || keyA == "" {
			t.Fatalf("%q and %q have the keys %q and %q", a, b, keyA, keyB)
		}
	})
}

// regrouped generates what one gets of a tuple who joins it and splits it carelessly.
func regrouped(tuple []string) *rapid.Generator[[]string] {
	joined := strings.Join(tuple, "#")
	return rapid.SampledFrom([][]string{
		tuple,
		{joined},
		{idempotency.JoinKey(tuple...)},
		slices.DeleteFunc(strings.Split(joined, "#"), func(s string) bool { return s == "" }),
		append(slices.Clone(tuple), tuple...),
	}).Filter(func(t []string) bool { return len(t) > 0 })
}

// Rule 11: a fingerprint that is long or no text is stored as a hash, since a store may not give it back as it was.
func TestStoredFingerprint(t *testing.T) {
	longest := strings.Repeat("f", idempotency.MaxKeyLength)
	hash := func(fingerprint string) string { return strings.TrimPrefix(hashed(fingerprint), "orders#") }
	for _, test := range []struct{ name, fingerprint, want string }{
		{"none", "", ""},
		{"hexadecimal", "e4e68fb7bd0e697a", "e4e68fb7bd0e697a"},
		{"not ASCII", "größe", "größe"},
		{"longest", longest, longest},
		{"one byte too long", longest + "f", hash(longest + "f")},
		{"bytes", "\xff\x00\xfe", hash("\xff\x00\xfe")},
		{"replacement character", "\ufffd", "\ufffd"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &faultStore{}
			g := newGuard(t, store)
			for _, print := range []string{test.fingerprint, test.fingerprint, "another"} {
				c, err := g.Claim(t.Context(), idempotency.Request{Key: "k", Fingerprint: print})
				if print == "another" && test.fingerprint != "" {
					wantErr(t, err, idempotency.ErrFingerprintMismatch)
					continue
				}
				if wantErr(t, err); !c.Replayed() {
					wantErr(t, c.Complete(t.Context(), nil))
				}
			}
			got := []string{store.claims[0].Fingerprint, store.claims[1].Fingerprint}
			if diff := cmp.Diff([]string{test.want, test.want}, got); diff != "" {
				t.Errorf("fingerprints of the claims (-want +got):\n%s", diff)
			}
		})
	}
}
