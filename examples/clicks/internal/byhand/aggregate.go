package byhand

import (
	"bytes"
	"crypto/md5"

	"google.golang.org/protobuf/encoding/protowire"
)

// magic is how an aggregate of the Kinesis Producer Library begins. The MD5 of what is between ends it.
// See https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md
var magic = []byte("\xf3\x89\x9a\xc2")

// The fields of AggregatedRecord and of Record that matter here.
const (
	recordsField = 3
	dataField    = 3
)

// split returns the data of the records in an aggregate, or of a record that is none.
func split(data []byte) ([][]byte, error) {
	message, isAggregate := bytes.CutPrefix(data, magic)
	if !isAggregate || len(message) < md5.Size {
		return [][]byte{data}, nil
	}
	message, digest := message[:len(message)-md5.Size], message[len(message)-md5.Size:]
	if sum := md5.Sum(message); !bytes.Equal(sum[:], digest) {
		return [][]byte{data}, nil
	}
	var all [][]byte
	records, err := fields(message, recordsField)
	if err != nil {
		return nil, err
	}
	for _, record := range records {
		data, err := fields(record, dataField)
		if err != nil {
			return nil, err
		}
		all = append(all, data...)
	}
	return all, nil
}

// fields returns the values of the fields with the number, which are bytes.
func fields(message []byte, number protowire.Number) ([][]byte, error) {
	var values [][]byte
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		message = message[size:]
		size = protowire.ConsumeFieldValue(n, kind, message)
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		if n == number && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			values = append(values, value)
		}
		message = message[size:]
	}
	return values, nil
}
