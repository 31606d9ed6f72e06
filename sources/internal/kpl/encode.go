package kpl

import (
	"encoding/binary"
)

// Append appends the aggregate of the records to dst and returns the extended slice. As in the Kinesis Producer Library, a
// key that several records have is stored once, and the tables come first. An empty ExplicitHashKey is none, and nil Data
// are empty. The aggregate of no records has an empty message.
func Append(dst []byte, records []UserRecord) []byte {
	dst = append(dst, magic...)
	start := len(dst)
	partitionKeys, explicitHashKeys := map[string]uint64{}, map[string]uint64{}
	for i := range records {
		dst = appendKey(dst, partitionKeyTable, partitionKeys, records[i].PartitionKey)
	}
	for i := range records {
		if key := records[i].ExplicitHashKey; key != "" {
			dst = appendKey(dst, explicitHashKeyTable, explicitHashKeys, key)
		}
	}
	var head []byte // of a record: all but its data
	for i := range records {
		r := &records[i]
		head = appendVarint(head[:0], partitionKeyIndex, partitionKeys[r.PartitionKey])
		if r.ExplicitHashKey != "" {
			head = appendVarint(head, explicitHashKeyIndex, explicitHashKeys[r.ExplicitHashKey])
		}
		head = appendLength(head, recordData, len(r.Data))
		dst = appendLength(dst, userRecords, len(head)+len(r.Data))
		dst = append(dst, head...)
		dst = append(dst, r.Data...)
	}
	sum := digest(dst[start:])
	return append(dst, sum[:]...)
}

// appendKey appends the key to a table, unless it is there.
func appendKey(dst []byte, number uint64, indices map[string]uint64, key string) []byte {
	if _, found := indices[key]; found {
		return dst
	}
	indices[key] = uint64(len(indices))
	return append(appendLength(dst, number, len(key)), key...)
}

// appendVarint appends a field that is a number.
func appendVarint(dst []byte, number, value uint64) []byte {
	return binary.AppendUvarint(append(dst, byte(number<<3)|byte(varint)), value)
}

// appendLength appends the beginning of a field of so many bytes.
func appendLength(dst []byte, number uint64, length int) []byte {
	return binary.AppendUvarint(append(dst, byte(number<<3)|byte(lengthDelimited)), uint64(length))
}
