package dynamodbstreamtest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
)

// Item is an item of a table, or its key: its attributes by name.
type Item = map[string]events.DynamoDBAttributeValue

// maxItemSize is the limit of an item, 400 KB
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html).
const maxItemSize = 400 << 10

// copyItem returns a copy that shares nothing with the item, and its JSON, which is the same for items that are equal.
// A value that was not made by one of the functions of package events, or that JSON cannot hold, is an error.
func copyItem(item Item) (copied Item, text string, err error) {
	for name, value := range item {
		if err := checkValue(value); err != nil {
			return nil, "", fmt.Errorf("dynamodbstreamtest: attribute %q: %w", name, err)
		}
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

// checkValue returns an error for a value whose encoding would panic or be another value: the zero value of its type
// claims to be binary and holds nothing.
func checkValue(v events.DynamoDBAttributeValue) error {
	if v.DataType() != events.DataTypeNull && v.IsNull() {
		return errors.New("it has no value, but must be made by a function of package events such as NewStringAttribute")
	}
	switch v.DataType() {
	case events.DataTypeList:
		for i, element := range v.List() {
			if err := checkValue(element); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
	case events.DataTypeMap:
		for name, element := range v.Map() {
			if err := checkValue(element); err != nil {
				return fmt.Errorf("element %q: %w", name, err)
			}
		}
	}
	return nil
}

// keyOf returns the key attributes of an item, their text and that of the partition key alone. They must be there, be
// text, numbers or bytes, and not be empty, as DynamoDB demands.
func (t *Table) keyOf(item Item) (key Item, text, partition string, err error) {
	key = Item{}
	for _, name := range []string{t.key.Partition, t.key.Sort} {
		if name == "" {
			continue
		}
		value, ok := item[name]
		if !ok {
			return nil, "", "", fmt.Errorf("dynamodbstreamtest: item must have the key attribute %q", name)
		}
		if err := checkValue(value); err != nil {
			return nil, "", "", fmt.Errorf("dynamodbstreamtest: key attribute %q: %w", name, err)
		}
		empty := false
		switch value.DataType() {
		case events.DataTypeString:
			empty = value.String() == ""
		case events.DataTypeNumber:
			empty = value.Number() == ""
		case events.DataTypeBinary:
			empty = len(value.Binary()) == 0
		default:
			return nil, "", "", fmt.Errorf("dynamodbstreamtest: key attribute %q must be a string, a number or binary", name)
		}
		if empty {
			return nil, "", "", fmt.Errorf("dynamodbstreamtest: key attribute %q must not be empty", name)
		}
		key[name] = value
	}
	if key, text, err = copyItem(key); err != nil {
		return nil, "", "", err
	}
	_, partition, err = copyItem(Item{t.key.Partition: key[t.key.Partition]})
	return key, text, partition, err
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
