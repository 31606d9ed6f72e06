package dynamodbstreamtest

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
)

// Item is an item of a table, or its key: its attributes by name.
type Item = map[string]events.DynamoDBAttributeValue

// The limits of an item and of the values of its key attributes, in bytes
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html).
const (
	maxItemSize      = 400 << 10
	maxPartitionSize = 2048
	maxSortSize      = 1024
)

// copyItem returns a copy that shares nothing with the item, and its JSON, which is the same for items that are equal.
// What checkAttributes refuses is an error.
func copyItem(item Item) (copied Item, text string, err error) {
	if err := checkAttributes(item); err != nil {
		return nil, "", fmt.Errorf("dynamodbstreamtest: %w", err)
	}
	b, err := json.Marshal(item)
	if err != nil {
		return nil, "", fmt.Errorf("dynamodbstreamtest: item: %w", err)
	}
	if err := json.Unmarshal(b, &copied); err != nil {
		return nil, "", fmt.Errorf("dynamodbstreamtest: item: %w", err)
	}
	return copied, string(b), nil
}

// keyOf returns the key attributes of an item, their text and that of the partition key alone. They must be there, be
// strings, numbers or binary, and be neither empty nor too long, as DynamoDB demands.
func (t *Table) keyOf(item Item) (key Item, text, partition string, err error) {
	key = Item{}
	for _, name := range t.key.names() {
		value, ok := item[name]
		if !ok {
			return nil, "", "", fmt.Errorf("dynamodbstreamtest: item must have the key attribute %q", name)
		}
		if err := checkValue(value); err != nil {
			return nil, "", "", fmt.Errorf("dynamodbstreamtest: key attribute %q: %w", name, err)
		}
		limit := int64(maxSortSize)
		if name == t.key.Partition {
			limit = maxPartitionSize
		}
		switch bytes := valueSize(value); {
		case keyTypeName(value) == "":
			return nil, "", "", fmt.Errorf("dynamodbstreamtest: key attribute %q must be a string, a number or binary", name)
		case bytes == 0:
			return nil, "", "", fmt.Errorf("dynamodbstreamtest: key attribute %q must not be empty", name)
		case bytes > limit:
			return nil, "", "", fmt.Errorf("dynamodbstreamtest: key attribute %q has %d bytes, but must have at most %d", name,
				bytes, limit)
		}
		key[name] = value
	}
	if key, text, err = copyItem(key); err != nil {
		return nil, "", "", err
	}
	_, partition, err = copyItem(Item{t.key.Partition: key[t.key.Partition]})
	return key, text, partition, err
}

// keyTypeName returns the name of a value's type, and "" if no key attribute can have it.
func keyTypeName(v events.DynamoDBAttributeValue) string {
	switch v.DataType() {
	case events.DataTypeString:
		return "string"
	case events.DataTypeNumber:
		return "number"
	case events.DataTypeBinary:
		return "binary"
	}
	return ""
}

// checkKeyTypes returns an error for a key of another type than those before it. The first key that was put stands for
// what a table declares.
func (t *Table) checkKeyTypes(key Item) error {
	for _, name := range t.key.names() {
		if first, ok := t.firstKey[name]; ok && keyTypeName(first) != keyTypeName(key[name]) {
			return fmt.Errorf("dynamodbstreamtest: key attribute %q is of type %s, but must be of type %s as in the items before",
				name, keyTypeName(key[name]), keyTypeName(first))
		}
	}
	return nil
}

// size returns the size of an item as DynamoDB counts it, nearly: names and values in bytes
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html).
func size(item Item) int64 {
	var n int64
	for name, value := range item {
		n += int64(len(name)) + valueSize(value)
	}
	return n
}

func valueSize(v events.DynamoDBAttributeValue) int64 {
	var n int64
	switch v.DataType() {
	case events.DataTypeBinary:
		n = int64(len(v.Binary()))
	case events.DataTypeString:
		n = int64(len(v.String()))
	case events.DataTypeNumber:
		n = int64(len(v.Number())+1)/2 + 1
	case events.DataTypeBinarySet:
		for _, b := range v.BinarySet() {
			n += int64(len(b))
		}
	case events.DataTypeStringSet:
		for _, s := range v.StringSet() {
			n += int64(len(s))
		}
	case events.DataTypeNumberSet:
		for _, s := range v.NumberSet() {
			n += int64(len(s)+1)/2 + 1
		}
	case events.DataTypeList:
		n = 3
		for _, element := range v.List() {
			n += 1 + valueSize(element)
		}
	case events.DataTypeMap:
		n = 3 + size(v.Map()) + int64(len(v.Map()))
	default: // null and boolean
		n = 1
	}
	return n
}
