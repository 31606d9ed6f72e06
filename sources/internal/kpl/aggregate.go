package kpl

import (
	"crypto/fips140"
	"crypto/md5"
	"errors"
	"fmt"
	"strings"
)

// UserRecord is one record of an aggregate. Its sub-sequence number is its index in the aggregate, from 0.
type UserRecord struct {
	PartitionKey    string // the bytes of the aggregate, which need not be UTF-8
	ExplicitHashKey string // a decimal number, or "" for none
	Data            []byte // of Split: never nil
}

const magic = "\xf3\x89\x9a\xc2"

// magicBase64 is how the base64 of the magic begins. Behind its 30 bits follow two more, in a letter from 'g' to 'v'.
const magicBase64 = "84maw"

// The field numbers of AggregatedRecord and of Record.
const (
	partitionKeyTable    = 1
	explicitHashKeyTable = 2
	userRecords          = 3

	partitionKeyIndex    = 1
	explicitHashKeyIndex = 2
	recordData           = 3
	recordTags           = 4
)

// minRecord is the size of the smallest user record that Split accepts, in bytes: two fields of two bytes each.
const minRecord = 4

// MayBeAggregate reports whether the base64 text decodes to data that begin with the magic of an aggregate. It looks at
// the first six characters, not counting the line breaks that encoding/base64 ignores too. Only IsAggregate can tell
// whether such data are one.
func MayBeAggregate(text string) bool {
	matched := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\r' || c == '\n':
		case matched == len(magicBase64):
			return 'g' <= c && c <= 'v'
		case c != magicBase64[matched]:
			return false
		default:
			matched++
		}
	}
	return false
}

// IsAggregate reports whether data are an aggregated record: whether they begin with the magic and end with the MD5 of
// what is between. Data that look like one in part are a plain record, as for the Kinesis Client Library
// (https://github.com/awslabs/amazon-kinesis-client, AggregatorUtil). Unlike it, IsAggregate also takes the aggregate of
// an empty message for one, of no records.
func IsAggregate(data []byte) bool {
	message, ok := messageOf(data)
	return ok && digest(message) == [md5.Size]byte(data[len(data)-md5.Size:])
}

// Split returns the user records of an aggregate, in their order. The data must be such that IsAggregate holds for them;
// Split does not compute the digest again. Each record's Data is a part of data, without room to append to; the
// keys are copies, one for each entry of a table. An aggregate of no records has an empty slice.
//
// Split keeps the rules of protocol buffers: fields come in any order, so that a table may follow the records that refer
// to it, unknown fields are skipped, and of several values of a field that is not repeated the last one counts. It is
// stricter in that a known field of another wire type, and a group, are errors. Tags are skipped unread. An error says
// what was found and what was expected, and there are no records then.
func Split(data []byte) ([]UserRecord, error) {
	message, ok := messageOf(data)
	if !ok {
		return nil, fmt.Errorf("kpl: data are %d bytes that are no aggregate, want % X, a message and its MD5", len(data), magic)
	}
	s, err := measure(message)
	if err != nil {
		return nil, err
	}
	keys := s.keys(message)
	partitionKeys, explicitHashKeys := keys[:s.partitionKeys], keys[s.partitionKeys:]

	// Of more records than this, one is too small, so that there is no need to have room for them.
	records := make([]UserRecord, 0, min(s.records, s.recordBytes/minRecord))
	for r := (reader{message: message}); r.next(); { // measure has read all fields, so that there is no error
		if r.number != userRecords {
			continue
		}
		record, err := parseRecord(r.bytes, partitionKeys, explicitHashKeys)
		if err != nil {
			return nil, fmt.Errorf("kpl: record %d of the aggregate: %w", len(records), err)
		}
		records = append(records, record)
	}
	return records, nil
}

// messageOf returns what is between magic and digest, and whether data have both.
func messageOf(data []byte) (message []byte, ok bool) {
	if len(data) < len(magic)+md5.Size || string(data[:len(magic)]) != magic {
		return nil, false
	}
	return data[len(magic) : len(data)-md5.Size], true
}

// digest returns the MD5 of the message. It is the format's checksum and protects nothing, so that it has to work in a
// program that runs with GODEBUG=fips140=only too, where crypto/md5 panics otherwise.
func digest(message []byte) (sum [md5.Size]byte) {
	fips140.WithoutEnforcement(func() { sum = md5.Sum(message) })
	return sum
}

// size is what there is in a message.
type size struct {
	partitionKeys, explicitHashKeys int // entries of the tables
	keyBytes                        int // of all entries
	records, recordBytes            int
}

// measure counts what is in the message. It returns an error if the message is not made of whole fields, or if one of
// those that are known is of another type.
func measure(message []byte) (s size, err error) {
	r := reader{message: message}
	for r.next() {
		switch r.number {
		case partitionKeyTable:
			r.want("partition_key_table", lengthDelimited)
			s.partitionKeys++
			s.keyBytes += len(r.bytes)
		case explicitHashKeyTable:
			r.want("explicit_hash_key_table", lengthDelimited)
			s.explicitHashKeys++
			s.keyBytes += len(r.bytes)
		case userRecords:
			r.want("records", lengthDelimited)
			s.records++
			s.recordBytes += len(r.bytes)
		}
	}
	if r.err != nil {
		return size{}, fmt.Errorf("kpl: aggregate: %w", r.err)
	}
	return s, nil
}

// keys returns the entries of the partition key table, followed by those of the explicit hash key table. They are parts
// of one string, since a message mostly has as many of them as records.
func (s size) keys(message []byte) []string {
	var text strings.Builder
	text.Grow(s.keyBytes)
	keys := make([]string, s.partitionKeys+s.explicitHashKeys)
	partitionKeys, explicitHashKeys := 0, s.partitionKeys
	for r := (reader{message: message}); (partitionKeys < s.partitionKeys || explicitHashKeys < len(keys)) && r.next(); {
		start := text.Len()
		switch r.number {
		case partitionKeyTable:
			text.Write(r.bytes)
			keys[partitionKeys] = text.String()[start:]
			partitionKeys++
		case explicitHashKeyTable:
			text.Write(r.bytes)
			keys[explicitHashKeys] = text.String()[start:]
			explicitHashKeys++
		}
	}
	return keys
}

// parseRecord reads one user record.
func parseRecord(message []byte, partitionKeys, explicitHashKeys []string) (record UserRecord, err error) {
	var partitionKey, explicitHashKey uint64
	hasPartitionKey, hasExplicitHashKey := false, false
	r := reader{message: message}
	for r.next() {
		switch r.number {
		case partitionKeyIndex:
			r.want("partition_key_index", varint)
			partitionKey, hasPartitionKey = r.value, true
		case explicitHashKeyIndex:
			r.want("explicit_hash_key_index", varint)
			explicitHashKey, hasExplicitHashKey = r.value, true
		case recordData:
			r.want("data", lengthDelimited)
			record.Data = r.bytes
		case recordTags:
			r.want("tags", lengthDelimited)
		}
	}
	switch {
	case r.err != nil:
		return UserRecord{}, r.err
	case !hasPartitionKey:
		return UserRecord{}, fmt.Errorf("partition_key_index is missing, want one of %d partition keys", len(partitionKeys))
	case record.Data == nil:
		return UserRecord{}, errors.New("data are missing, want a field, if only an empty one")
	}
	record.PartitionKey, err = entry("partition_key", partitionKeys, partitionKey)
	if err == nil && hasExplicitHashKey {
		record.ExplicitHashKey, err = entry("explicit_hash_key", explicitHashKeys, explicitHashKey)
	}
	if err != nil {
		return UserRecord{}, err
	}
	return record, nil
}

// entry returns what the index of the table with the name refers to.
func entry(name string, table []string, index uint64) (string, error) {
	if index >= uint64(len(table)) {
		return "", fmt.Errorf("%s_index is %d, want less than %d, the entries of %s_table", name, index, len(table), name)
	}
	return table[index], nil
}
