package kpl_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/sources/internal/kpl"
)

func TestAppend(t *testing.T) {
	records := []kpl.UserRecord{
		{PartitionKey: "b", Data: []byte("one")},
		{PartitionKey: "a", ExplicitHashKey: "18", Data: nil},
		{PartitionKey: "b", ExplicitHashKey: "17", Data: []byte("three")},
		{PartitionKey: "", ExplicitHashKey: "18", Data: []byte("four")},
	}
	want := slices.Concat([]byte("before"), aggregate(slices.Concat(
		partitionKey("b"), partitionKey("a"), partitionKey(""), explicitHashKey("18"), explicitHashKey("17"),
		simple(0, "one"),
		record(varintField(1, 1), varintField(2, 0), bytesField(3, "")),
		record(varintField(1, 0), varintField(2, 1), bytesField(3, "three")),
		record(varintField(1, 2), varintField(2, 0), bytesField(3, "four")),
	)))
	if diff := cmp.Diff(want, kpl.Append([]byte("before"), records)); diff != "" {
		t.Errorf("aggregate (-want +got):\n%s", diff)
	}
}

// TestAppendBytes holds the format byte by byte. The digest is what md5sum prints for the message.
func TestAppendBytes(t *testing.T) {
	got := kpl.Append(nil, []kpl.UserRecord{{PartitionKey: "pk", Data: []byte("hello")}})
	const want = "\xf3\x89\x9a\xc2" + "\x0a\x02pk" + "\x1a\x09" + "\x08\x00" + "\x1a\x05hello" +
		"\xa0\xc5\x42\x09\x9c\xb3\xe8\x2c\xf6\x19\x24\xbc\x8e\x5c\x5c\x15"
	if string(got) != want {
		t.Errorf("aggregate is\n%x, want\n%x", got, want)
	}
}

func TestAppendNothing(t *testing.T) {
	// The digest is the MD5 of nothing, which RFC 1321 gives.
	const want = "\xf3\x89\x9a\xc2\xd4\x1d\x8c\xd9\x8f\x00\xb2\x04\xe9\x80\x09\x98\xec\xf8\x42\x7e"
	if got := kpl.Append(nil, nil); string(got) != want {
		t.Errorf("aggregate is %x, want %x", got, want)
	}
}

// drawRecords draws records that share keys, some of which are long enough for lengths of two bytes.
func drawRecords(t *rapid.T) []kpl.UserRecord {
	key := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "\xff"}), rapid.StringN(0, 200, 400))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) kpl.UserRecord {
		return kpl.UserRecord{
			PartitionKey: key.Draw(t, "partition key"), ExplicitHashKey: key.Draw(t, "explicit hash key"),
			Data: append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data")...),
		}
	}), 0, 200).Draw(t, "records")
}

func TestAppendedIsSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := append([]kpl.UserRecord{}, drawRecords(t)...)
		data := kpl.Append(nil, want)
		if !kpl.IsAggregate(data) {
			t.Fatal("what Append returned is no aggregate")
		}
		got, err := kpl.Split(data)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v, records (-want +got):\n%s", err, diff)
		}
		got, err = oracle(data[len(magic) : len(data)-16])
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("protowire: error %v, records (-want +got):\n%s", err, diff)
		}
	})
}
