package idempotency_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
)

func compressed(o *idempotency.Options) { o.Results.Compress = true }

// storedAs returns what stands in the store for value.
func storedAs[R any](t *testing.T, value R, optFns ...func(*idempotency.Options)) string {
	t.Helper()
	store := idempotency.NewMemoryStore()
	_, err := idempotency.Do(t.Context(), newGuard(t, store, optFns...), "k", returns(value, nil))
	wantErr(t, err)
	entry, _ := store.Get("orders#k")
	if entry.Status != idempotency.Completed {
		t.Errorf("entry is %v, want COMPLETED", entry.Status)
	}
	return string(entry.Data)
}

// A result is compressed where that makes it smaller, and not where it does not, is not wanted or is not worth it.
func TestCompress(t *testing.T) {
	noise := make([]byte, 4096)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	const overhead = 2 // the quotes
	for _, test := range []struct {
		name   string
		value  string
		option func(*idempotency.Options)
		want   bool
	}{
		{"off", long, nil, false},
		{"on", long, compressed, true},
		{"1,024 bytes", long[:1024-overhead], compressed, false},
		{"1,025 bytes", long[:1025-overhead], compressed, true},
		{"noise", base64.StdEncoding.EncodeToString(noise), compressed, false},
		{"8 MiB", strings.Repeat("a", 8<<20-overhead), compressed, true},
		{"more than 8 MiB, which would not be read", strings.Repeat("a", 8<<20-overhead+1), compressed, false},
	} {
		got := storedAs(t, test.value, test.option)
		if is := strings.HasPrefix(got, `{"@oncekit":"gzip","data":"H4sI`); is != test.want || is && len(got) >= len(test.value) {
			t.Errorf("%s: stored is %.60s... of %d bytes, want it compressed: %t", test.name, got, len(got), test.want)
		}
		replay, err := replayOf(t, got)
		if replay.Value != test.value || err != nil {
			t.Errorf("%s: replay is %.60v..., error is %v, want the value", test.name, replay.Value, err)
		}
	}
}

// A compressed result that is no good is an error. So is one that would take all of the memory: it is read up to 8 MiB.
func TestCompressedResultInvalid(t *testing.T) {
	zip := func(data []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	good := zip([]byte(`"` + long + `"`))
	bomb := zip(bytes.Repeat([]byte(" "), 10<<20)) // without its end, which nobody must get to
	damaged := bytes.Clone(good)
	damaged[len(damaged)-5] ^= 1 // the checksum's last byte
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"truncated":        {good[:len(good)-1], "unexpected EOF"},
		"damaged":          {damaged, "gzip: invalid checksum"},
		"something behind": {append(bytes.Clone(good), 0, 0), "EOF"},
		"not JSON":         {zip([]byte(long)), "invalid character 'a'"},
		"bomb":             {bomb[:len(bomb)-8], "it is more than 8388608 bytes inflated, want no more"},
	} {
		data, err := json.Marshal(map[string]any{"@oncekit": "gzip", "data": test.data})
		wantErr(t, err)
		got, err := replayOf(t, string(data))
		if wantErr(t, err, idempotency.ErrResultInvalid); !strings.Contains(errorText(err), test.want) || got.Value != nil {
			t.Errorf("%s: result is %.60v, error is %v, want %q", name, got.Value, err, test.want)
		}
	}
	data, _ := json.Marshal(map[string]any{"@oncekit": "gzip", "data": good})
	if got, err := replayOf(t, string(data)); got.Value != long || err != nil {
		t.Errorf("the good one is %.60v, error %v, want its value", got.Value, err)
	}
}

// Results are compressed by several goroutines at a time.
func TestCompressConcurrently(t *testing.T) {
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			want := strings.Repeat(string(rune('a'+i)), 5000)
			if got, err := replayOf(t, storedAs(t, want, compressed)); got.Value != want || err != nil {
				t.Errorf("replay is %.20v..., error %v, want %.20s...", got.Value, err, want)
			}
		})
	}
	group.Wait()
}

// BenchmarkResult is a first run and a replay, of a result that is stored as it is, and of one that is compressed.
func BenchmarkResult(b *testing.B) {
	row := map[string]any{"id": "order-12345", "status": "PAID", "amount": 129.95, "html": "<b>"}
	for name, test := range map[string]struct {
		rows   int
		option func(*idempotency.Options)
	}{
		"small": {1, nil}, "small, compressed": {1, compressed}, "64 KB": {1000, nil}, "64 KB, compressed": {1000, compressed},
	} {
		b.Run(name, func(b *testing.B) {
			value := make([]map[string]any, test.rows)
			for i := range value {
				value[i] = row
			}
			b.ReportAllocs()
			for b.Loop() {
				g := newGuard(b, idempotency.NewMemoryStore(), test.option)
				for range 2 {
					if _, err := idempotency.Do(b.Context(), g, "k", returns(value, nil)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
