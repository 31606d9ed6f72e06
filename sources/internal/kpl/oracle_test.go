package kpl_test

import (
	"crypto/md5"
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oncekit/oncekit/sources/internal/kpl"
)

const magic = "\xf3\x89\x9a\xc2"

// aggregate puts magic and digest around a message.
func aggregate(message []byte) []byte {
	sum := md5.Sum(message)
	return slices.Concat([]byte(magic), message, sum[:])
}

// The fields of messages, as protowire writes them.

func bytesField(number protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func varintField(number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
}

func partitionKey(key string) []byte    { return bytesField(1, key) }
func explicitHashKey(key string) []byte { return bytesField(2, key) }

// record is a user record of the fields.
func record(fields ...[]byte) []byte { return bytesField(3, string(slices.Concat(fields...))) }

// simple is a user record with the partition key at the index.
func simple(index uint64, data string) []byte {
	return record(varintField(1, index), bytesField(3, data))
}

var errOracle = errors.New("refused by protowire")

// consume reads a field of a message with protowire. Of a length-delimited one there are bytes, of a varint a value.
func consume(message []byte) (number protowire.Number, wireType protowire.Type, value uint64, bytes, rest []byte, err error) {
	number, wireType, n := protowire.ConsumeTag(message)
	if n < 0 || number > protowire.MaxValidNumber || wireType == protowire.StartGroupType {
		return 0, 0, 0, nil, nil, errOracle
	}
	message = message[n:]
	switch wireType {
	case protowire.VarintType:
		value, n = protowire.ConsumeVarint(message)
	case protowire.BytesType:
		bytes, n = protowire.ConsumeBytes(message)
	default:
		n = protowire.ConsumeFieldValue(number, wireType, message)
	}
	if n < 0 {
		return 0, 0, 0, nil, nil, errOracle
	}
	return number, wireType, value, bytes, message[n:], nil
}

// oracle is Split of a message, straightforward and by protowire.
func oracle(message []byte) ([]kpl.UserRecord, error) {
	var partitionKeys, explicitHashKeys []string
	var bodies [][]byte
	for len(message) > 0 {
		number, wireType, _, bytes, rest, err := consume(message)
		if err != nil || number <= 3 && wireType != protowire.BytesType {
			return nil, errOracle
		}
		message = rest
		switch number {
		case 1:
			partitionKeys = append(partitionKeys, string(bytes))
		case 2:
			explicitHashKeys = append(explicitHashKeys, string(bytes))
		case 3:
			bodies = append(bodies, bytes)
		}
	}
	records := make([]kpl.UserRecord, 0, len(bodies))
	for _, body := range bodies {
		var partitionKey, explicitHashKey *uint64
		var data []byte
		hasData := false
		for len(body) > 0 {
			number, wireType, value, bytes, rest, err := consume(body)
			if err != nil || number <= 2 && wireType != protowire.VarintType ||
				(number == 3 || number == 4) && wireType != protowire.BytesType {
				return nil, errOracle
			}
			body = rest
			switch number {
			case 1:
				partitionKey = &value
			case 2:
				explicitHashKey = &value
			case 3:
				data, hasData = bytes, true
			}
		}
		if partitionKey == nil || !hasData || *partitionKey >= uint64(len(partitionKeys)) {
			return nil, errOracle
		}
		r := kpl.UserRecord{PartitionKey: partitionKeys[*partitionKey], Data: data}
		if explicitHashKey != nil {
			if *explicitHashKey >= uint64(len(explicitHashKeys)) {
				return nil, errOracle
			}
			r.ExplicitHashKey = explicitHashKeys[*explicitHashKey]
		}
		records = append(records, r)
	}
	return records, nil
}
