package kpl_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/sources/internal/kpl"
)

// tb is what checkSplit needs of a *testing.T or a *rapid.T, which is no testing.TB.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// checkSplit compares Split with the oracle, and returns whether they take the message for a good one.
func checkSplit(t tb, message []byte) bool {
	t.Helper()
	data := aggregate(message)
	if !kpl.IsAggregate(data) {
		t.Fatalf("IsAggregate is false for the message %x", message)
	}
	got, err := kpl.Split(data)
	want, wantErr := oracle(message)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("Split of the message %x: error is %v, want as of protowire: %v", message, err, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("Split of the message %x (-want +got):\n%s", message, diff)
	}
	total := 0
	for i, r := range got {
		total += len(r.Data)
		if cap(r.Data) != len(r.Data) {
			t.Errorf("data %d of the message %x have room for %d bytes, want none", i, message, cap(r.Data)-len(r.Data))
		}
	}
	if total > len(message) {
		t.Errorf("data of the message %x are %d bytes, want at most its %d", message, total, len(message))
	}
	return err == nil
}

func FuzzSplit(f *testing.F) {
	key := partitionKey("a")
	for _, seed := range [][]byte{
		nil,
		slices.Concat(key, simple(0, "d")),
		slices.Concat(record(varintField(1, 1), varintField(2, 0), bytesField(3, "d")), key, explicitHashKey("17"), partitionKey("b")),
		slices.Concat(key, record(bytesField(3, ""), bytesField(4, "tag"), varintField(1, 0), bytesField(3, "d"))),
		slices.Concat(key, simple(1, "d")),
		slices.Concat(varintField(9, 1<<63), []byte("\x29eight...\x35four\x2b\x2c")),
		[]byte("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message []byte) { checkSplit(t, message) })
}

// FuzzData is about whole data, which mostly are no aggregates.
func FuzzData(f *testing.F) {
	f.Add([]byte(magic))
	f.Add(aggregate(nil))
	f.Add(aggregate(slices.Concat(partitionKey("a"), simple(0, "d"))))
	f.Add(slices.Concat([]byte(magic), partitionKey("a"), simple(0, "d"), make([]byte, md5.Size)))
	f.Fuzz(func(t *testing.T, data []byte) {
		beginsWithMagic := bytes.HasPrefix(data, []byte(magic))
		want := false
		if beginsWithMagic && len(data) >= len(magic)+md5.Size {
			want = bytes.Equal(data, aggregate(data[len(magic):len(data)-md5.Size]))
		}
		if got := kpl.IsAggregate(data); got != want {
			t.Errorf("IsAggregate(%x) is %v, want %v", data, got, want)
		}
		if got := kpl.MayBeAggregate(base64.StdEncoding.EncodeToString(data)); got != beginsWithMagic {
			t.Errorf("MayBeAggregate of the base64 of %x is %v, want %v", data, got, beginsWithMagic)
		}
		_, _ = kpl.Split(data) // whatever it says, it does not panic
	})
}

func FuzzMayBeAggregate(f *testing.F) {
	for _, seed := range []string{"", "84mawg==", "84mawv==", "84maww==", "8\r4m\naw\ng==", "84mawgoB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return
		}
		if got, want := kpl.MayBeAggregate(text), bytes.HasPrefix(data, []byte(magic)); got != want {
			t.Errorf("MayBeAggregate(%q) is %v, want %v", text, got, want)
		}
	})
}

// drawFields draws fields in any order, mostly such as there are in a message or in a record.
func drawFields(t *rapid.T, n int, known ...func() []byte) []byte {
	unknown := []func() []byte{
		func() []byte {
			return varintField(protowire.Number(rapid.IntRange(1, 9).Draw(t, "number")), rapid.Uint64().Draw(t, "value"))
		},
		func() []byte { return bytesField(protowire.Number(rapid.IntRange(1, 9).Draw(t, "number")), "x") },
		func() []byte { return []byte("\x29eight...") },
		func() []byte { return []byte("\x35four") },
		func() []byte { return rapid.SliceOfN(rapid.Byte(), 1, 3).Draw(t, "noise") },
	}
	var message []byte
	for range rapid.IntRange(0, n).Draw(t, "fields") {
		of := known
		if rapid.IntRange(0, 39).Draw(t, "unknown") == 0 {
			of = unknown
		}
		message = append(message, rapid.SampledFrom(of).Draw(t, "field")()...)
	}
	return message
}

func TestSplitAgreesWithProtowire(t *testing.T) {
	taken, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		index := func(number protowire.Number) func() []byte {
			return func() []byte { return varintField(number, rapid.Uint64Range(0, 3).Draw(t, "index")) }
		}
		text := func(number protowire.Number) func() []byte {
			return func() []byte { return bytesField(number, rapid.StringN(0, 3, 200).Draw(t, "text")) }
		}
		// Many fields make it likely that a record has what is required, and that an index finds an entry.
		userRecord := func() []byte {
			return record(varintField(1, 0), drawFields(t, 4, index(1), index(2), text(3), text(4)), bytesField(3, "last"))
		}
		bare := func() []byte { return record(drawFields(t, 4, index(1), index(2), text(3))) }
		tables := slices.Concat(partitionKey("p"), partitionKey("q"), partitionKey("r"), explicitHashKey("5"), explicitHashKey("6"))
		message := drawFields(t, 5, text(1), text(2), userRecord, userRecord, userRecord, bare)
		if rapid.Bool().Draw(t, "tables first") {
			message = append(tables, message...)
		} else {
			message = append(message, tables...)
		}
		if checkSplit(t, message) {
			taken++
		} else {
			refused++
		}
	})
	if taken == 0 || refused == 0 {
		t.Errorf("%d messages were taken and %d refused, want some of both", taken, refused)
	}
}
