package kinesistest

import (
	"errors"
	"fmt"
	"math/big"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/internal/kpl"
	"github.com/oncekit/oncekit/sources/shardtest"
)

// Record is a record to be put.
type Record struct {
	// PartitionKey is the key whose MD5 decides the shard, 1 to 256 characters in UTF-8.
	PartitionKey string
	// ExplicitHashKey, unless it is empty, decides the shard instead: a decimal number from 0 to 2^128 - 1, without
	// leading zeros.
	ExplicitHashKey string
	// Data is what the record says.
	Data []byte
	// WithoutPartitionKey stands for a record of a stream that distributes its records itself (AUTO): PartitionKey must
	// be empty, the shards take turns, and partitionKey is missing in the event.
	WithoutPartitionKey bool
}

// aggregateKey is the partition key that the Kinesis Producer Library gives an aggregate of several records, which has
// an explicit hash key anyway (KinesisRecord::partition_key in kinesis_record.cc of awslabs/amazon-kinesis-producer).
const aggregateKey = "a"

// check checks r as PutRecord does (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecord.html).
func (r *Record) check(maxSize int) error {
	characters := utf8.RuneCountInString(r.PartitionKey)
	switch {
	case r.WithoutPartitionKey && (r.PartitionKey != "" || r.ExplicitHashKey != ""):
		return errors.New("kinesistest: a record without partition key must have no PartitionKey and no ExplicitHashKey")
	case !r.WithoutPartitionKey && (characters < 1 || characters > 256):
		return fmt.Errorf("kinesistest: PartitionKey has %d characters, but must have 1 to 256", characters)
	case !utf8.ValidString(r.PartitionKey):
		return fmt.Errorf("kinesistest: PartitionKey is %q, but must be UTF-8", r.PartitionKey)
	case r.ExplicitHashKey != "" && r.hash() == nil:
		return fmt.Errorf("kinesistest: ExplicitHashKey is %q, but must be a decimal number from 0 to 2^128 - 1 without "+
			"leading zeros", r.ExplicitHashKey)
	case len(r.Data)+len(r.PartitionKey) > maxSize:
		return fmt.Errorf("kinesistest: record has %d bytes, but must have at most MaxRecordSize (%d)",
			len(r.Data)+len(r.PartitionKey), maxSize)
	}
	return nil
}

// hash returns the hash key that decides the shard, and nil if the explicit one is none.
func (r *Record) hash() *big.Int {
	if r.ExplicitHashKey == "" {
		return hashOf(r.PartitionKey)
	}
	hash, ok := new(big.Int).SetString(r.ExplicitHashKey, 10)
	if !ok || hash.Sign() < 0 || hash.BitLen() > 128 || hash.String() != r.ExplicitHashKey {
		return nil
	}
	return hash
}

// Put puts a record into the open shard that its key belongs to, and returns the shard and the sequence number. A record
// that Kinesis would refuse is an error.
func (s *Stream) Put(r Record) (shardID, sequenceNumber string, err error) {
	if err := r.check(s.options.MaxRecordSize); err != nil {
		return "", "", err
	}
	err = s.kit.Write(func(w writer) error {
		switch {
		case r.WithoutPartitionKey:
			shardID = s.open[s.keyless%len(s.open)].shardID
			s.keyless++
		default:
			shardID = s.shardOf(r.hash())
		}
		sequenceNumber = s.append(w, shardID, r)
		return nil
	})
	return shardID, sequenceNumber, err
}

// PutAggregated puts the records as one aggregate in the format of the Kinesis Producer Library, which has their order,
// and returns its shard and sequence number. As with that library, the aggregate's own partition key is "a", and one
// record alone is put as it is.
//
// The records must belong to one shard, as the library sees to; PutAggregatedAt does without.
func (s *Stream) PutAggregated(records ...Record) (shardID, sequenceNumber string, err error) {
	return s.putAggregate("", records)
}

// PutAggregatedAt is PutAggregated into an open shard of the caller's choice. The records may belong to others, as those
// of an aggregate do that the library has put together before a shard was split.
func (s *Stream) PutAggregatedAt(shardID string, records ...Record) (sequenceNumber string, err error) {
	_, sequenceNumber, err = s.putAggregate(shardID, records)
	return sequenceNumber, err
}

// putAggregate puts an aggregate into a shard, which is that of the records if it is "".
func (s *Stream) putAggregate(at string, records []Record) (shardID, sequenceNumber string, err error) {
	if len(records) == 0 {
		return "", "", errors.New("kinesistest: an aggregate must have a record")
	}
	children := make([]kpl.UserRecord, len(records))
	for i := range records {
		r := &records[i]
		if err := r.check(s.options.MaxRecordSize); err != nil {
			return "", "", err
		}
		if r.WithoutPartitionKey {
			return "", "", errors.New("kinesistest: a record of an aggregate must have a PartitionKey")
		}
		children[i] = kpl.UserRecord{PartitionKey: r.PartitionKey, ExplicitHashKey: r.ExplicitHashKey, Data: r.Data}
	}
	whole := records[0]
	if len(records) > 1 {
		whole = Record{
			PartitionKey: aggregateKey, ExplicitHashKey: records[0].hash().String(), Data: kpl.Append(nil, children),
		}
		if err := whole.check(s.options.MaxRecordSize); err != nil {
			return "", "", err
		}
	}
	err = s.kit.Write(func(w writer) error {
		shardID = at
		if at == "" {
			shardID = s.shardOf(records[0].hash())
		} else if _, err := s.openIndex(at); err != nil {
			return err
		}
		for i := range records {
			if other := s.shardOf(records[i].hash()); at == "" && other != shardID {
				return fmt.Errorf("kinesistest: records of the aggregate belong to %s (%q) and %s (%q), but must belong to one "+
					"shard", shardID, records[0].PartitionKey, other, records[i].PartitionKey)
			}
		}
		sequenceNumber = s.append(w, shardID, whole)
		return nil
	})
	return shardID, sequenceNumber, err
}

// append puts a record into a shard and returns its sequence number.
func (s *Stream) append(w writer, shardID string, r Record) string {
	number := s.sequences.next(shardID)
	arrivedAt := time.Now().UTC().Truncate(time.Millisecond)
	event := events.KinesisEventRecord{
		AwsRegion: region, EventID: shardID + ":" + number, EventName: "aws:kinesis:record", EventSource: "aws:kinesis",
		EventSourceArn: s.sourceARN(), EventVersion: "1.0", InvokeIdentityArn: role,
		Kinesis: events.KinesisRecord{
			ApproximateArrivalTimestamp: events.SecondsEpochTime{Time: arrivedAt},
			Data:                        append([]byte{}, r.Data...), // never null, and not the caller's
			PartitionKey:                r.PartitionKey,
			SequenceNumber:              number,
			KinesisSchemaVersion:        "1.0",
		},
	}
	lane := r.PartitionKey
	if r.WithoutPartitionKey {
		lane = number // no key, no order
	}
	w.Append(shardID, shardtest.Record[events.KinesisEventRecord]{
		SequenceNumber: number, Lane: lane, ArrivedAt: arrivedAt, Event: event, JSON: encode(event),
	})
	return number
}
