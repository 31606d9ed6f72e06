package dynamodbstream

import (
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/batch"
)

// decoder decodes the items of changes into a T.
type decoder[T any] struct {
	values *attributevalue.Decoder
	whole  bool // whether T decodes itself, so that it makes no sense to give it less than an item
}

func newDecoder[T any]() decoder[T] {
	whole := reflect.PointerTo(reflect.TypeFor[T]()).Implements(reflect.TypeFor[attributevalue.Unmarshaler]())
	return decoder[T]{values: attributevalue.NewDecoder(), whole: whole}
}

// decode sets Keys, Old and New of c, or none of them if it returns an error.
func (d *decoder[T]) decode(r *record, c *Change[T]) error {
	if r.problem != nil {
		return r.problem
	}
	if isAbsent(r.keys) {
		return fmt.Errorf("dynamodbstream: change %.200q has no Keys, want those of its item", r.id)
	}
	keys, err := d.image(r, "Keys", r.keys)
	if err != nil {
		return err
	}
	oldImage, err := d.image(r, "OldImage", r.oldImage)
	if err != nil {
		return err
	}
	newImage, err := d.image(r, "NewImage", r.newImage)
	if err != nil {
		return err
	}
	c.Keys, c.Old, c.New = *keys, oldImage, newImage
	return nil
}

// isAbsent reports whether a member has no value, or null, which stands for none.
func isAbsent(value string) bool { return value == "" || value == "null" }

// image decodes an image, of which member is the name, from its JSON. It returns nil if there is none.
func (d *decoder[T]) image(r *record, member, image string) (*T, error) {
	if isAbsent(image) {
		return nil, nil
	}
	item, problem := parseItem(image)
	if problem != nil {
		return nil, fmt.Errorf("dynamodbstream: %s of change %.200q: %w", member, r.id, problem)
	}
	v := new(T)
	if attributes, ok := any(v).(*map[string]types.AttributeValue); ok {
		*attributes = item // which the SDK cannot decode into
		return v, nil
	}
	if err := d.unmarshal(item, v); err != nil {
		return nil, fmt.Errorf("dynamodbstream: %s of change %.200q is not a valid %v: %w", member, r.id, reflect.TypeFor[T](),
			d.locate(item, err))
	}
	return v, nil
}

// unmarshal decodes an item by the SDK's rules. Its decoder panics where a T has what it cannot set: an interface with
// methods such as types.AttributeValue, an array of another length than the binary, an unexported embedded pointer.
func (d *decoder[T]) unmarshal(item map[string]types.AttributeValue, v *T) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &batch.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return d.values.Decode(&types.AttributeValueMemberM{Value: item}, v)
}

// locate returns the error for an item that could not be decoded. To name the attribute, which the SDK does not, it
// decodes each by itself, in the order of their names; the SDK takes them in any.
func (d *decoder[T]) locate(item map[string]types.AttributeValue, err error) error {
	if d.whole {
		return &imageError{err: err}
	}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		one := map[string]types.AttributeValue{name: item[name]}
		if err := d.unmarshal(one, new(T)); err != nil {
			return &imageError{attribute: name, err: err}
		}
	}
	return &imageError{err: err}
}
