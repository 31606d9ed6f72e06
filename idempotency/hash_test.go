package idempotency_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// Case 17, and the hashes as any other program computes them: of {"a":1,"b":[1,2]}.
func TestPayloadHash(t *testing.T) {
	want := map[idempotency.Hash]string{
		idempotency.MD5:    "888b3f60c76285b53b3cf2d23f9a98b8",
		idempotency.SHA1:   "bcf221bfadd4155feea1f993f73c7612b35dced2",
		idempotency.SHA256: "8baa73198470c7bb4c3ce142a8fd651affc0310d878bb9bd159e37a573fb4874",
		idempotency.SHA512: "8aa9fb110250d16288c784ded214eb7e0951b53e6f93145314526ffe5e4572f3" +
			"c4669b18e7fa3542e3a93b27467894352e3556ed55b923f745767c6e6c37f139",
	}
	for hash := range want {
		for _, payload := range []string{`{"a":1,"b":[1,2]}`, ` {"b" : [1.0,2e0], "\u0061":10e-1} `} {
			got, err := hash.PayloadHash([]byte(payload))
			if diff := cmp.Diff(want[hash], got); diff != "" || err != nil {
				t.Errorf("%v of %s: error is %v, hash (-want +got):\n%s", hash, payload, err, diff)
			}
		}
	}
	got, err := idempotency.PayloadHash([]byte(`{"b":[1,2],"a":1}`))
	if got != want[idempotency.SHA256] || err != nil {
		t.Errorf("PayloadHash is %q, %v, want SHA-256's", got, err)
	}
	for _, other := range []string{`{"a":1,"b":[2,1]}`, `{"a":"1","b":[1,2]}`, `{"a":1,"b":[1,2],"c":null}`, `[{"a":1,"b":[1,2]}]`} {
		if hash, err := idempotency.PayloadHash([]byte(other)); hash == got || err != nil {
			t.Errorf("hash of %s is %q, %v, want another one", other, hash, err)
		}
	}
}

func TestHashErrors(t *testing.T) {
	const want = "idempotency: hash function is Hash(4), want SHA256, SHA512, SHA1 or MD5"
	if got, err := idempotency.Hash(4).PayloadHash([]byte("1")); got != "" || errorText(err) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	names := fmt.Sprint(idempotency.SHA256, idempotency.SHA512, idempotency.SHA1, idempotency.MD5)
	if diff := cmp.Diff("SHA-256 SHA-512 SHA-1 MD5", names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// In a process that forbids MD5 and SHA-1, these are errors and do not panic.
func TestHashStrictFIPS(t *testing.T) {
	const inside = "HASH_TEST_STRICT_FIPS"
	if os.Getenv(inside) == "" {
		test := exec.Command(os.Args[0], "-test.run=^TestHashStrictFIPS$", "-test.v")
		test.Env = append(os.Environ(), inside+"=1", "GODEBUG=fips140=only")
		if out, err := test.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for _, hash := range []idempotency.Hash{idempotency.MD5, idempotency.SHA1} {
		want := "idempotency: hash function is " + hash.String() + ", want SHA-256 or SHA-512: the program enforces FIPS 140-3"
		if got, err := hash.PayloadHash([]byte("1")); got != "" || errorText(err) != want {
			t.Errorf("%v: got %q, %v, want %q", hash, got, err, want)
		}
	}
	for _, hash := range []idempotency.Hash{idempotency.SHA256, idempotency.SHA512} {
		if got, err := hash.PayloadHash([]byte("1")); got == "" || err != nil {
			t.Errorf("%v: got %q, %v", hash, got, err)
		}
	}
}

// Hashes are computed on many goroutines at once, which share what the canonicaliser uses again.
func TestPayloadHashConcurrently(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			payload := fmt.Appendf(nil, `{"z":{"n":%d,"a":"\u00e9"},"b":%q}`, i, strings.Repeat("x", 100*i))
			want, err := idempotency.PayloadHash(payload)
			for range 200 {
				if got, again := idempotency.PayloadHash(payload); got != want || err != nil || again != nil {
					t.Errorf("hash is %q, %v, and %q, %v before", got, again, want, err)
				}
			}
		})
	}
	group.Wait()
}

// payload1KB is an order of about 1 KB with its members in no order.
var payload1KB = func() []byte {
	var lines []string
	for i := range 8 {
		lines = append(lines, fmt.Sprintf(`{"sku": "sku-%06d", "quantity": %d, "price": %d.95, "gift": false, "note": "leave at the door, please"}`,
			i*7919, i+1, 10+i))
	}
	return fmt.Appendf(nil, `{"order_id": "ord-2024-000123", "customer": {"name": "Jane Doe", "email": "jane@example.com", "id": 9007199254740993},
		"lines": [%s], "currency": "EUR", "created": 1735689600.5, "tags": ["web", "first"], "address": null}`, strings.Join(lines, ", "))
}()

func BenchmarkPayloadHash(b *testing.B) {
	b.Run("canonical", func(b *testing.B) {
		b.SetBytes(int64(len(payload1KB)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := idempotency.PayloadHash(payload1KB); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unmarshal and marshal", func(b *testing.B) {
		b.SetBytes(int64(len(payload1KB)))
		b.ReportAllocs()
		for b.Loop() {
			var value any
			if err := json.Unmarshal(payload1KB, &value); err != nil {
				b.Fatal(err)
			}
			text, err := json.Marshal(value)
			if err != nil {
				b.Fatal(err)
			}
			sum := sha256.Sum256(text)
			_ = hex.EncodeToString(sum[:])
		}
	})
}
