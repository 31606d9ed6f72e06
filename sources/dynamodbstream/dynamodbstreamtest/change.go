package dynamodbstreamtest

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/shardtest"
)

// Change is a change of an item as the stream has recorded it. The zero value is no change: an operation that leaves an
// item as it was writes no record.
type Change struct {
	// ShardID is the shard that has the record.
	ShardID string
	// EventID is the record's eventID, and SequenceNumber what an answer names it by.
	EventID, SequenceNumber string
}

// ErrNoItem means that the table has no item with the key.
var ErrNoItem = errors.New("dynamodbstreamtest: no item has the key")

// Put puts an item into the table, in place of an earlier one with the same key: an INSERT or a MODIFY. Errors are, as in
// DynamoDB, an item of more than 400 KB, an attribute without a name, a number that is none or out of range, a set that is
// empty or has an element twice, text that is not UTF-8, and a key attribute that is missing, empty, longer than DynamoDB
// takes or of another type than in the first item put.
func (t *Table) Put(item Item) (Change, error) {
	return t.change(item, func(Item) (Item, error) { return item, nil }, nil)
}

// Update changes an item: fn gets its attributes, changes them as it likes except for the key, and the result is put in
// its place: a MODIFY. Without an item it returns ErrNoItem, and an error as Put does. fn must not call the table's
// methods.
func (t *Table) Update(key Item, fn func(item Item)) (Change, error) {
	return t.change(key, func(old Item) (Item, error) {
		if old == nil {
			return nil, ErrNoItem
		}
		changed, _, err := copyItem(old)
		if err != nil {
			return nil, err
		}
		fn(changed)
		return changed, nil
	}, nil)
}

// Delete deletes an item: a REMOVE, or no record if there is none. Only the key attributes of key count.
func (t *Table) Delete(key Item) (Change, error) {
	return t.change(key, func(Item) (Item, error) { return nil, nil }, nil)
}

// Expire deletes an item as the service does when its time to live is over: a REMOVE whose userIdentity says so
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html). Without an item it
// returns ErrNoItem.
func (t *Table) Expire(key Item) (Change, error) {
	return t.change(key, func(old Item) (Item, error) {
		if old == nil {
			return nil, ErrNoItem
		}
		return nil, nil
	}, &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"})
}

// change replaces the item with the key by what fn makes of it, nil for none, and records that.
func (t *Table) change(of Item, fn func(old Item) (Item, error), by *events.DynamoDBUserIdentity) (c Change, err error) {
	key, text, partition, err := t.keyOf(of)
	if err != nil {
		return Change{}, err
	}
	err = t.kit.Write(func(w writer) error {
		if err := t.checkKeyTypes(key); err != nil {
			return err
		}
		old := t.items[text]
		changed, err := fn(old)
		if err != nil {
			return err
		}
		updated, err := t.check(changed, text)
		if err != nil {
			return err
		}
		_, before, err := copyItem(old)
		if err != nil {
			return err
		}
		image, after, err := copyItem(updated)
		if err != nil || before == after {
			return err // an item that stays the same writes no record
		}
		if updated == nil {
			delete(t.items, text)
		} else {
			t.items[text] = updated
		}
		if t.firstKey == nil {
			t.firstKey = maps.Clone(key)
		}
		c = t.record(w, change{key: key, lane: text, partition: partition, before: old, after: image, by: by})
		return nil
	})
	return c, err
}

// check returns a copy of a changed item, which must still have its key and not be too large. Without an item it
// returns nil.
func (t *Table) check(changed Item, keyText string) (Item, error) {
	if changed == nil {
		return nil, nil
	}
	copied, _, err := copyItem(changed)
	if err != nil {
		return nil, err
	}
	_, text, _, err := t.keyOf(copied)
	switch {
	case err != nil:
		return nil, err
	case text != keyText:
		return nil, fmt.Errorf("dynamodbstreamtest: key is %s after the update, but must stay %s", text, keyText)
	case size(copied) > maxItemSize:
		return nil, fmt.Errorf("dynamodbstreamtest: item has %d bytes, but must have at most %d", size(copied), maxItemSize)
	}
	return copied, nil
}

// change is what a record says. Its items are the record's own: the table has copies, or has them no more.
type change struct {
	key             Item
	lane, partition string // the text of the key, and that of the partition key
	before, after   Item
	by              *events.DynamoDBUserIdentity
}

// record puts the record of a change into the stream.
func (t *Table) record(w writer, c change) Change {
	number := t.sequences.next()
	now := time.Now().UTC().Truncate(time.Second)
	operation := events.DynamoDBOperationTypeModify
	switch {
	case c.before == nil:
		operation = events.DynamoDBOperationTypeInsert
	case c.after == nil:
		operation = events.DynamoDBOperationTypeRemove
	}
	view := t.options.StreamViewType
	stream := events.DynamoDBStreamRecord{
		ApproximateCreationDateTime: events.SecondsEpochTime{Time: now},
		Keys:                        c.key,
		SequenceNumber:              number,
		StreamViewType:              string(view),
	}
	if view == events.DynamoDBStreamViewTypeNewAndOldImages || view == events.DynamoDBStreamViewTypeNewImage {
		stream.NewImage = c.after
	}
	if view == events.DynamoDBStreamViewTypeNewAndOldImages || view == events.DynamoDBStreamViewTypeOldImage {
		stream.OldImage = c.before
	}
	stream.SizeBytes = size(stream.Keys) + size(stream.NewImage) + size(stream.OldImage)
	event := events.DynamoDBEventRecord{
		AWSRegion: region, Change: stream, EventID: t.sequences.eventID(), EventName: string(operation),
		EventSource: "aws:dynamodb", EventVersion: "1.1", EventSourceArn: t.ARN(), UserIdentity: c.by,
	}
	shardID := t.shardOf(c.partition)
	w.Append(shardID, shardtest.Record[events.DynamoDBEventRecord]{
		SequenceNumber: number, Lane: c.lane, ArrivedAt: now, Event: event, JSON: encode(event),
	})
	return Change{ShardID: shardID, EventID: event.EventID, SequenceNumber: number}
}
