package dynamostore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is the item that an action of a transaction is for.
type item struct {
	operation string
	table     string
	key       map[string]types.AttributeValue // nil: that of a Put, which is somewhere in put
	put       map[string]types.AttributeValue
	size      int // bytes at least
}

// tableOf returns the name in an ARN, and what is none as it is. All tables of a transaction are of one account and Region.
func tableOf(table string) string {
	if strings.HasPrefix(table, "arn:") {
		if _, name, found := strings.Cut(table, ":table/"); found {
			return name
		}
	}
	return table
}

func (i *item) keyNames() []string { return slices.Sorted(maps.Keys(i.key)) }

// attribute returns an attribute of the key, nil if there is none.
func (i *item) attribute(name string) types.AttributeValue {
	if i.key != nil {
		return i.key[name]
	}
	return i.put[name]
}

// same reports whether both are the same item for certain. Which attributes of a Put are the key is known only where
// another action says what the table's key is; without that, puts of equal items are the same. Numbers are compared as they
// are written. The rest is for DynamoDB to refuse.
func (i *item) same(other *item, keyNames []string) bool {
	if i.table != other.table {
		return false
	}
	if len(keyNames) == 0 {
		return reflect.DeepEqual(i.put, other.put)
	}
	for _, name := range keyNames {
		a, b := i.attribute(name), other.attribute(name)
		if a == nil || !reflect.DeepEqual(a, b) {
			return false
		}
	}
	return true
}

// copier copies what an action holds, so that the work can go on to use it, and measures it. It keeps the first error.
type copier struct {
	size int // bytes at least
	err  error
}

func (c *copier) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *copier) text(s *string) *string {
	if s == nil {
		return nil
	}
	return aws.String(*s)
}

// keyed returns the item with a key.
func (c *copier) keyed(key map[string]types.AttributeValue, size int) item {
	if len(key) == 0 {
		c.fail(errors.New("its Key is empty; want that of an item"))
	}
	return item{key: key, size: size}
}

func (c *copier) expression(condition **string, names *map[string]string, values *map[string]types.AttributeValue) {
	*condition = c.text(*condition)
	*names = maps.Clone(*names)
	*values = c.attributes("ExpressionAttributeValues", *values)
}

// attributes copies the attributes of the field called name.
func (c *copier) attributes(name string, from map[string]types.AttributeValue) map[string]types.AttributeValue {
	if from == nil {
		return nil
	}
	to := make(map[string]types.AttributeValue, len(from))
	for attribute, v := range from {
		value, err := c.value(v, 0)
		if err != nil {
			c.fail(fmt.Errorf("attribute %q of its %s is %w", attribute, name, err))
		}
		c.size += len(attribute)
		to[attribute] = value
	}
	return to
}

// value copies a value. What it takes up at least is its bytes of text or binary, and one for anything else ("DynamoDB item
// sizes and formats", DynamoDB Developer Guide). Errors follow "is".
func (c *copier) value(v types.AttributeValue, depth int) (types.AttributeValue, error) {
	if v == nil || reflect.ValueOf(v).IsNil() {
		return nil, fmt.Errorf("a nil %T; want a value", v)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("in more than %d maps and lists in one another; want at most that many", maxDepth)
	}
	c.size++
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		c.size += len(v.Value) - 1
		return text(v.Value), nil
	case *types.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: v.Value}, nil
	case *types.AttributeValueMemberB:
		c.size += len(v.Value) - 1
		return &types.AttributeValueMemberB{Value: bytes.Clone(v.Value)}, nil
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}, nil
	case *types.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: v.Value}, nil
	case *types.AttributeValueMemberSS:
		for _, s := range v.Value {
			c.size += len(s)
		}
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Value)}, nil
	case *types.AttributeValueMemberNS:
		c.size += len(v.Value)
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Value)}, nil
	case *types.AttributeValueMemberBS:
		set := make([][]byte, len(v.Value))
		for i, b := range v.Value {
			set[i] = bytes.Clone(b)
			c.size += len(b)
		}
		return &types.AttributeValueMemberBS{Value: set}, nil
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(v.Value))
		for i, element := range v.Value {
			var err error
			if list[i], err = c.value(element, depth+1); err != nil {
				return nil, err
			}
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case *types.AttributeValueMemberM:
		members := make(map[string]types.AttributeValue, len(v.Value))
		for name, member := range v.Value {
			var err error
			if members[name], err = c.value(member, depth+1); err != nil {
				return nil, err
			}
			c.size += len(name)
		}
		return &types.AttributeValueMemberM{Value: members}, nil
	default:
		return nil, fmt.Errorf("a %T; want one of DynamoDB's types", v)
	}
}
