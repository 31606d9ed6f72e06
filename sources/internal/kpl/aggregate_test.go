package kpl_test

import (
	"bytes"
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oncekit/oncekit/sources/internal/kpl"
)

// TestLookAlikes is about what begins like an aggregate, and may be one.
func TestLookAlikes(t *testing.T) {
	three := aggregate(slices.Concat(partitionKey("a"), partitionKey("b"), simple(0, "1"), simple(1, "2"), simple(0, "3")))
	wrongDigest := slices.Clone(three)
	wrongDigest[len(wrongDigest)-1] ^= 1
	wrongMessage := slices.Clone(three)
	wrongMessage[len(magic)] ^= 1
	wrongMagic := slices.Clone(three)
	wrongMagic[3] ^= 1

	for _, test := range []struct {
		name        string
		data        []byte
		mayBe       bool
		isAggregate bool
		want        []kpl.UserRecord
		err         string
	}{
		{name: "nothing"},
		{name: "plain record", data: []byte(`{"click":1,"page":"/checkout"}`)},
		{
			name: "aggregate of 3", data: three, mayBe: true, isAggregate: true,
			want: []kpl.UserRecord{
				{PartitionKey: "a", Data: []byte("1")}, {PartitionKey: "b", Data: []byte("2")}, {PartitionKey: "a", Data: []byte("3")},
			},
		},
		{name: "magic alone", data: []byte(magic), mayBe: true},
		{name: "ten bytes that begin with the magic", data: []byte(magic + "123456"), mayBe: true},
		{name: "one byte too short for a digest", data: aggregate(nil)[:19], mayBe: true},
		{name: "wrong digest", data: wrongDigest, mayBe: true},
		{name: "changed message", data: wrongMessage, mayBe: true},
		{name: "other magic", data: wrongMagic},
		{name: "byte behind the digest", data: append(slices.Clone(three), 0), mayBe: true},
		{
			name: "key index out of range", data: aggregate(slices.Concat(partitionKey("a"), simple(0, "1"), simple(1, "2"))),
			mayBe: true, isAggregate: true,
			err: "kpl: record 1 of the aggregate: partition_key_index is 1, want less than 1, the entries of partition_key_table",
		},
		{name: "zero records", data: aggregate(partitionKey("a")), mayBe: true, isAggregate: true, want: []kpl.UserRecord{}},
		{name: "empty message", data: aggregate(nil), mayBe: true, isAggregate: true, want: []kpl.UserRecord{}},
		{
			name: "broken inside", data: aggregate([]byte("not a message")), mayBe: true, isAggregate: true,
			err: "kpl: aggregate: field 13 at offset 0 has wire type 6, want 0, 1, 2 or 5",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := kpl.MayBeAggregate(base64.StdEncoding.EncodeToString(test.data)); got != test.mayBe {
				t.Errorf("MayBeAggregate is %v, want %v", got, test.mayBe)
			}
			if got := kpl.IsAggregate(test.data); got != test.isAggregate {
				t.Errorf("IsAggregate is %v, want %v", got, test.isAggregate)
			}
			if !test.isAggregate {
				return
			}
			got, err := kpl.Split(test.data)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			checkError(t, err, test.err)
		})
	}
}

func TestSplit(t *testing.T) {
	both := slices.Concat(partitionKey("a"), partitionKey("b"), explicitHashKey("17"))
	one := func(r kpl.UserRecord) []kpl.UserRecord { return []kpl.UserRecord{r} }
	for _, test := range []struct {
		name    string
		message []byte
		want    []kpl.UserRecord
	}{
		{
			name:    "explicit hash key",
			message: slices.Concat(both, record(varintField(1, 1), varintField(2, 0), bytesField(3, "d"))),
			want:    one(kpl.UserRecord{PartitionKey: "b", ExplicitHashKey: "17", Data: []byte("d")}),
		},
		{
			name:    "fields of a record in another order",
			message: slices.Concat(both, record(bytesField(3, "d"), varintField(2, 0), varintField(1, 1))),
			want:    one(kpl.UserRecord{PartitionKey: "b", ExplicitHashKey: "17", Data: []byte("d")}),
		},
		{
			name:    "tables behind the records",
			message: slices.Concat(record(varintField(1, 1), varintField(2, 0), bytesField(3, "d")), both),
			want:    one(kpl.UserRecord{PartitionKey: "b", ExplicitHashKey: "17", Data: []byte("d")}),
		},
		{
			name:    "tables between the records, in parts",
			message: slices.Concat(simple(1, "1"), partitionKey("a"), simple(0, "2"), explicitHashKey("17"), partitionKey("b")),
			want:    []kpl.UserRecord{{PartitionKey: "b", Data: []byte("1")}, {PartitionKey: "a", Data: []byte("2")}},
		},
		{
			name: "the last value counts",
			message: slices.Concat(both, explicitHashKey("18"), record(varintField(1, 9), bytesField(3, "first"), varintField(2, 9),
				varintField(2, 1), bytesField(3, "last"), varintField(1, 0))),
			want: one(kpl.UserRecord{PartitionKey: "a", ExplicitHashKey: "18", Data: []byte("last")}),
		},
		{
			name: "unknown fields of every type",
			message: slices.Concat(varintField(4, math.MaxUint64), both, []byte("\x29eight...\x35four"), bytesField(1<<29-1, "x"),
				record(varintField(5, 1), varintField(1, 0), []byte("\x31eight..."), bytesField(3, "d"), []byte("\x3dfour"), bytesField(8, "\xff"))),
			want: one(kpl.UserRecord{PartitionKey: "a", Data: []byte("d")}),
		},
		{
			name: "tags",
			message: slices.Concat(both, record(varintField(1, 0), bytesField(4, string(bytesField(1, "k"))), bytesField(3, "d"),
				bytesField(4, "\xff"))),
			want: one(kpl.UserRecord{PartitionKey: "a", Data: []byte("d")}),
		},
		{
			name:    "empty data and empty keys",
			message: slices.Concat(partitionKey(""), explicitHashKey(""), record(varintField(1, 0), varintField(2, 0), bytesField(3, ""))),
			want:    one(kpl.UserRecord{Data: []byte{}}),
		},
		{
			name:    "keys that are not UTF-8",
			message: slices.Concat(partitionKey("a\xff\x00"), explicitHashKey("\xfe"), record(varintField(1, 0), varintField(2, 0), bytesField(3, "d"))),
			want:    one(kpl.UserRecord{PartitionKey: "a\xff\x00", ExplicitHashKey: "\xfe", Data: []byte("d")}),
		},
		{
			name: "numbers longer than they need be",
			message: slices.Concat([]byte("\x8a\x80\x00\x81\x00a"), // tag 1, length 1
				[]byte("\x1a\x8f\x80\x80\x80\x80\x80\x80\x80\x80\x00"), []byte("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x1a\x81\x00d")),
			want: one(kpl.UserRecord{PartitionKey: "a", Data: []byte("d")}),
		},
		{
			name:    "an aggregate as data",
			message: slices.Concat(both, simple(0, string(aggregate(simple(0, "d"))))),
			want:    one(kpl.UserRecord{PartitionKey: "a", Data: aggregate(simple(0, "d"))}),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := kpl.Split(aggregate(test.message))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if got, err := oracle(test.message); err != nil || !cmp.Equal(test.want, got) {
				t.Errorf("the test is wrong: protowire reads %v, %v", got, err)
			}
		})
	}
}

func TestSplitRefuses(t *testing.T) {
	key := partitionKey("a")
	for _, test := range []struct {
		name    string
		message []byte
		want    string
	}{
		// Of the message.
		{"tag cut off", []byte("\x80"), "aggregate: tag at offset 0: number is cut off, want a last byte below 0x80"},
		{
			"tag too large", []byte("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02"),
			"aggregate: tag at offset 0: number has more than 64 bits, want at most 64",
		},
		{"field number 0", append(key, 0x02, 0x00), "aggregate: field number at offset 3 is 0, want 1 to 536870911"},
		{"field number 2^29", varintField(1<<29, 0), "aggregate: field number at offset 0 is 536870912, want 1 to 536870911"},
		{"no length", []byte("\x0a"), "aggregate: length of field 1 at offset 0: number is cut off, want a last byte below 0x80"},
		{
			"length over the end", slices.Concat(key, []byte("\x1a\x03ab")),
			"aggregate: field 3 at offset 3 has 3 bytes, want at most the 2 that are left",
		},
		{
			"length over 63 bits", protowire.AppendVarint([]byte("\x1a"), math.MaxUint64),
			"aggregate: field 3 at offset 0 has 18446744073709551615 bytes, want at most the 0 that are left",
		},
		{
			"length over 64 bits", []byte("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
			"aggregate: length of field 3 at offset 0: number has more than 64 bits, want at most 64",
		},
		{"fixed64 cut off", []byte("\x291234567"), "aggregate: field 5 at offset 0 has 8 bytes, want at most the 7 that are left"},
		{"fixed32 cut off", []byte("\x2d123"), "aggregate: field 5 at offset 0 has 4 bytes, want at most the 3 that are left"},
		{"number cut off", []byte("\x28\xff"), "aggregate: value of field 5 at offset 0: number is cut off, want a last byte below 0x80"},
		{"group", []byte("\x2b\x2c"), "aggregate: field 5 at offset 0 has wire type 3, want 0, 1, 2 or 5"},
		{"end of a group", []byte("\x2c"), "aggregate: field 5 at offset 0 has wire type 4, want 0, 1, 2 or 5"},
		{"wire type 7", []byte("\x2f"), "aggregate: field 5 at offset 0 has wire type 7, want 0, 1, 2 or 5"},
		{"partition key of another type", varintField(1, 0), "aggregate: partition_key_table has wire type 0, want 2"},
		{"explicit hash key of another type", []byte("\x151234"), "aggregate: explicit_hash_key_table has wire type 5, want 2"},
		{"records of another type", []byte("\x1912345678"), "aggregate: records has wire type 1, want 2"},
		{"broken behind good records", slices.Concat(key, simple(0, "d"), []byte("\x0a")), "aggregate: length of field 1 at offset 10: " +
			"number is cut off, want a last byte below 0x80"},
		{"the first of two faults", append(varintField(1, 0), 0x0a), "aggregate: partition_key_table has wire type 0, want 2"},

		// Of a record.
		{
			"no partition_key_index", slices.Concat(key, simple(0, "d"), record(bytesField(3, "d"))),
			"record 1 of the aggregate: partition_key_index is missing, want one of 1 partition keys",
		},
		{
			"no data", slices.Concat(key, record(varintField(1, 0))),
			"record 0 of the aggregate: data are missing, want a field, if only an empty one",
		},
		{"empty record", record(), "record 0 of the aggregate: partition_key_index is missing, want one of 0 partition keys"},
		{
			"no table", simple(0, "d"),
			"record 0 of the aggregate: partition_key_index is 0, want less than 0, the entries of partition_key_table",
		},
		{
			"index over 63 bits", slices.Concat(key, simple(math.MaxUint64, "d")),
			"record 0 of the aggregate: partition_key_index is 18446744073709551615, want less than 1, the entries of partition_key_table",
		},
		{
			"index that is 0 in 32 bits", slices.Concat(key, simple(1<<32, "d")),
			"record 0 of the aggregate: partition_key_index is 4294967296, want less than 1, the entries of partition_key_table",
		},
		{
			"explicit hash key index out of range",
			slices.Concat(key, key, explicitHashKey("1"), record(varintField(1, 1), varintField(2, 1), bytesField(3, "d"))),
			"record 0 of the aggregate: explicit_hash_key_index is 1, want less than 1, the entries of explicit_hash_key_table",
		},
		{
			"partition_key_index of another type", slices.Concat(key, record(bytesField(1, "\x00"), bytesField(3, "d"))),
			"record 0 of the aggregate: partition_key_index has wire type 2, want 0",
		},
		{
			"explicit_hash_key_index of another type", slices.Concat(key, record(varintField(1, 0), bytesField(2, ""), bytesField(3, "d"))),
			"record 0 of the aggregate: explicit_hash_key_index has wire type 2, want 0",
		},
		{
			"data of another type", slices.Concat(key, record(varintField(1, 0), varintField(3, 0))),
			"record 0 of the aggregate: data has wire type 0, want 2",
		},
		{
			"tags of another type", slices.Concat(key, record(varintField(1, 0), bytesField(3, "d"), varintField(4, 0))),
			"record 0 of the aggregate: tags has wire type 0, want 2",
		},
		{
			"data over the end of the record", slices.Concat(key, record(varintField(1, 0), []byte("\x1a\x02d")), simple(0, "d")),
			"record 0 of the aggregate: field 3 at offset 2 has 2 bytes, want at most the 1 that are left",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := kpl.Split(aggregate(test.message))
			if got != nil {
				t.Errorf("there are %d records beside the error, want none", len(got))
			}
			checkError(t, err, "kpl: "+test.want)
			if _, err := oracle(test.message); err == nil {
				t.Error("the test is wrong: protowire reads the message")
			}
		})
	}
}

func TestSplitRefusesWhatIsNoAggregate(t *testing.T) {
	for _, data := range []string{"", "\x0a", magic, magic + strings.Repeat("x", 15), strings.Repeat("x", 100)} {
		_, err := kpl.Split([]byte(data))
		if err == nil || !strings.Contains(err.Error(), "that are no aggregate, want F3 89 9A C2, a message and its MD5") {
			t.Errorf("Split of %q says %v", data, err)
		}
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("error is\n%q, want\n%q", got, want)
	}
}

// TestSplitShares shows what the records share with the data, with each other, and what they do not.
func TestSplitShares(t *testing.T) {
	data := aggregate(slices.Concat(partitionKey("aa"), explicitHashKey("17"),
		record(varintField(1, 0), varintField(2, 0), bytesField(3, "11")), record(varintField(1, 0), bytesField(3, "22"))))
	before := slices.Clone(data)
	records, err := kpl.Split(data)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(records[0].Data, "over the next record"...)
	if !bytes.Equal(before, data) {
		t.Error("an append to a record's data changed what follows")
	}
	for i := range data {
		data[i] = 'x'
	}
	want := []kpl.UserRecord{
		{PartitionKey: "aa", ExplicitHashKey: "17", Data: []byte("xx")}, {PartitionKey: "aa", Data: []byte("xx")},
	}
	if diff := cmp.Diff(want, records); diff != "" {
		t.Errorf("records after the data were overwritten (-want +got):\n%s", diff)
	}
}

func TestMayBeAggregate(t *testing.T) {
	for _, test := range []struct {
		text string
		want bool
	}{
		{"", false},
		{"8", false},
		{"84maw", false},
		{"84mawf", false},
		{"84mawg", true},
		{"84mawv", true},
		{"84maww", false},
		{"84mawG", false},
		{"84maw=", false},
		{"84maxg", false},
		{"X84mawg", false},
		{"84\nmaw\r\ng", true}, // encoding/base64 takes no notice of line breaks
		{"84 mawg", false},
		{strings.Repeat("\n", 1000), false},
	} {
		if got := kpl.MayBeAggregate(test.text); got != test.want {
			t.Errorf("MayBeAggregate(%q) is %v, want %v", test.text, got, test.want)
		}
	}
}
