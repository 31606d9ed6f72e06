package kinesis

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/stream"
)

// Record is a record of a stream, with its data decoded into a T. A record of a KPL aggregate is one of its own. It is the
// handler's to keep, but as long as it is kept, so is the text of the whole batch, up to 6 MB; Data does not hold on to
// that. A test of a handler can make one by a literal, &Record[T]{Data: data}; the methods of View then return zero values.
// To have those set too, send the record through Handler.Handle or package kinesistest.
type Record[T any] struct {
	// Data is the decoded data.
	Data T
	View
}

// View is a record as it was delivered. Its methods decode what they return when they are called.
type View struct{ r *record }

// record is where things are in the JSON of a record. All strings of it are parts of one string.
type record struct {
	raw          string
	id           string // eventID; with the number of a record in an aggregate
	arn          string // with the consumer's suffix, if there is one
	kinesis      string // JSON
	partitionKey string
	sequence     string
	data         string // JSON: base64
	child        []byte // the data of a record of an aggregate, of which it is a part
	sub          int    // its number there; whole for other records
	problem      error  // it is no record
}

// whole is record.sub of a record that is none of an aggregate.
const whole = -1

// ID returns the eventID, such as
// "shardId-000000000006:49590338271490256608559692538361571095921575989136588898". For a record of a KPL aggregate, that
// of the aggregate with '#' and the sub-sequence number behind it.
func (v View) ID() string {
	if v.r == nil {
		return ""
	}
	return v.r.id
}

// PartitionKey returns the record's partition key: that of its own, for a record of a KPL aggregate. It is "" if the
// record has none, as may be in a stream that distributes records by itself.
func (v View) PartitionKey() string {
	if v.r == nil {
		return ""
	}
	return v.r.partitionKey
}

// SequenceNumber returns the record's place in its shard: that of the aggregate, for a record of one. It is a decimal
// number of some 56 digits, too long for any type of number, and is compared by length before it is compared by digits.
func (v View) SequenceNumber() string {
	if v.r == nil {
		return ""
	}
	return v.r.sequence
}

// SubSequenceNumber returns the place of a record in its KPL aggregate, from 0, and whether it is a record of one.
func (v View) SubSequenceNumber() (n int, aggregated bool) {
	if v.r == nil || v.r.sub == whole {
		return 0, false
	}
	return v.r.sub, true
}

// ShardID returns the shard, such as "shardId-000000000006".
func (v View) ShardID() string {
	if v.r == nil {
		return ""
	}
	return v.r.shard()
}

// StreamARN returns the ARN of the stream, without the suffix that names a consumer with enhanced fan-out.
func (v View) StreamARN() string {
	if v.r == nil {
		return ""
	}
	return streamARN(v.r.arn)
}

// ArrivedAt returns when Kinesis took the record in (approximateArrivalTimestamp), or the zero time if the record does not
// say.
func (v View) ArrivedAt() time.Time {
	if v.r == nil {
		return time.Time{}
	}
	return stream.Time(envelope.Member(v.r.kinesis, "approximateArrivalTimestamp"))
}

// RawData returns the data as it was put, neither decoded nor inflated, or nil if there is none. The caller owns it.
func (v View) RawData() []byte {
	if v.r == nil {
		return nil
	}
	data, err := v.r.appendData(nil)
	if err != nil {
		return nil
	}
	return data
}

// Raw returns the record as aws-lambda-go has it: all of the aggregate, for a record of one. What of it is not of the type
// that AWS documents is left out.
func (v View) Raw() events.KinesisEventRecord {
	var e events.KinesisEventRecord
	if v.r != nil {
		_ = json.Unmarshal([]byte(v.r.raw), &e)
		_ = json.Unmarshal([]byte(v.r.kinesis), &e.Kinesis) // which is raw, for a record that came through Pipes
	}
	return e
}

// JSON returns the record as it was delivered. For a record of a KPL aggregate, partitionKey and data are its own, and a
// member subSequenceNumber is added, by which the handler knows it again if it is handed back.
func (v View) JSON() string {
	switch {
	case v.r == nil:
		return ""
	case v.r.sub == whole:
		return v.r.raw
	}
	event, inner := members(v.r.raw), members(v.r.kinesis)
	inner["partitionKey"], _ = json.Marshal(v.r.partitionKey)
	inner["data"], _ = json.Marshal(v.r.child)
	inner["subSequenceNumber"], _ = json.Marshal(v.r.sub)
	if len(v.r.kinesis) == len(v.r.raw) {
		event = inner // through Pipes, where they are one object
	} else {
		event["kinesis"], _ = json.Marshal(inner)
	}
	text, err := json.Marshal(event)
	if err != nil {
		return v.r.raw // which is JSON that encoding/json does not take
	}
	return string(text)
}

func members(object string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for name, value := range envelope.Members(object) {
		m[name] = json.RawMessage(value)
	}
	return m
}

// eventID returns the eventID as it was delivered: that of the aggregate, for a record of one.
func (r *record) eventID() string {
	if r.sub == whole {
		return r.id
	}
	return r.id[:max(strings.LastIndexByte(r.id, '#'), 0)]
}

// shard returns the shard that the eventID names before the sequence number.
func (r *record) shard() string {
	shard, _, ok := strings.Cut(r.id, ":")
	if !ok {
		return ""
	}
	return shard
}

// streamARN cuts off what AWS puts behind the stream's ARN for a consumer with enhanced fan-out, which would change every
// key (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_Consumer.html).
func streamARN(arn string) string {
	stream, _, _ := strings.Cut(arn, "/consumer/")
	return stream
}

// appendData appends the record's data. Of an error's text nothing is of the data.
func (r *record) appendData(dst []byte) ([]byte, error) {
	if r.sub != whole {
		return append(dst, r.child...), nil
	}
	text, _ := envelope.String(r.data)
	return base64.StdEncoding.AppendDecode(dst, []byte(text))
}
