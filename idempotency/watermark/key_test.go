package watermark_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/watermark"
)

const (
	streamARN = "arn:aws:kinesis:eu-west-1:123456789012:stream/clicks"
	shardID   = "shardId-000000000006"
)

func TestKey(t *testing.T) {
	longest := strings.Repeat("c", idempotency.MaxKeyLength-len("#watermark##"+streamARN+"#"+shardID))
	for _, test := range []struct {
		name, consumer, stream, shard, want string
	}{
		{"plain", "billing", streamARN, shardID, "#watermark#billing#" + streamARN + "#" + shardID},
		{"of enhanced fan-out", "billing", streamARN + "/consumer/fast:1700000000", shardID,
			"#watermark#billing#" + streamARN + "#" + shardID},
		{"escaped", "a#b%", streamARN, shardID, "#watermark#a%23b%25#" + streamARN + "#" + shardID},
		{"no consumer", "", streamARN, shardID, ""},
		{"no stream", "billing", "", shardID, ""},
		{"no stream but its consumer", "billing", "/consumer/fast", shardID, ""},
		{"no shard", "billing", streamARN, "", ""},
		{"longest", longest, streamARN, shardID, "#watermark#" + longest + "#" + streamARN + "#" + shardID},
	} {
		if got := watermark.Key(test.consumer, test.stream, test.shard); got != test.want {
			t.Errorf("%s: key is %q, want %q", test.name, got, test.want)
		}
	}
	for _, consumer := range []string{longest + "c", "\xff"} {
		got := watermark.Key(consumer, streamARN, shardID)
		if !strings.HasPrefix(got, "#watermark#sha256:") || len(got) != len("#watermark#sha256:")+64 {
			t.Errorf("key of consumer %.20q is %q, want a hash", consumer, got)
		}
	}
}

// TestKeysDiffer has no two tuples make one key, nor one that cannot be stored.
func TestKeysDiffer(t *testing.T) {
	part := rapid.OneOf(
		rapid.StringMatching(`[ab#%:]{1,4}`),
		rapid.SampledFrom([]string{"sha256", "sha256:", "\xff", "\xfe", "\uFFFD", strings.Repeat("a", 1000), strings.Repeat("a", 1001)}),
	)
	rapid.Check(t, func(t *rapid.T) {
		a := [3]string{part.Draw(t, "a0"), part.Draw(t, "a1"), part.Draw(t, "a2")}
		b := [3]string{part.Draw(t, "b0"), part.Draw(t, "b1"), part.Draw(t, "b2")}
		p, q := watermark.Key(a[0], a[1], a[2]), watermark.Key(b[0], b[1], b[2])
		if (p == q) != (a == b) {
			t.Fatalf("%q has key %q, and %q has key %q", a, p, b, q)
		}
		if len(p) > idempotency.MaxKeyLength || !utf8.ValidString(p) {
			t.Fatalf("%q has key %q, %d bytes, want up to %d bytes of UTF-8", a, p, len(p), idempotency.MaxKeyLength)
		}
	})
}

// TestKeysAreNoGuards has a guard claim what a watermark's key looks like, and sees that it is stored under another key. A
// namespace that would make it the same is refused.
func TestKeysAreNoGuards(t *testing.T) {
	key := watermark.Key("billing", streamARN, shardID)
	rest := strings.TrimPrefix(key, "#watermark#")
	for _, test := range []struct{ namespace, key string }{
		{"watermark", rest}, {"watermark", key}, {"billing", key}, {" ", key},
	} {
		store := &keyStore{}
		guard, err := idempotency.New(test.namespace, store)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := guard.Claim(t.Context(), idempotency.Request{Key: test.key}); err != nil {
			t.Fatal(err)
		}
		if store.key == "" || store.key == key || strings.HasPrefix(store.key, "#") {
			t.Errorf("namespace %q and key %q are stored as %q", test.namespace, test.key, store.key)
		}
	}
	for _, namespace := range []string{"", "#watermark"} {
		if _, err := idempotency.New(namespace, &keyStore{}); err == nil {
			t.Errorf("namespace %q is taken", namespace)
		}
	}
}

// keyStore remembers the key that was claimed.
type keyStore struct {
	idempotency.MemoryStore
	key string
}

func (s *keyStore) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	s.key = r.Key
	return s.MemoryStore.Claim(ctx, r)
}
