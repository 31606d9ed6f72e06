package payload

import (
	"fmt"
	"reflect"
)

// keyed is a payload that names its own key.
type keyed interface{ IdempotencyKey() string }

// Key returns the function by which a payload names its key: keyOf, which is a func(T) string or nil, or the method
// IdempotencyKey of T or *T. It returns nil if there is neither.
func Key[T any](keyOf any) (func(*T) string, error) {
	t := reflect.TypeFor[T]()
	if keyOf != nil {
		key, ok := keyOf.(func(T) string)
		switch {
		case !ok:
			return nil, fmt.Errorf("KeyOf has a %T, want a func(%v) string, as the handler decodes such payloads", keyOf, t)
		case key == nil:
			return nil, fmt.Errorf("KeyOf has a nil function, want a func(%v) string", t)
		}
		return func(v *T) string { return key(*v) }, nil
	}
	switch of := reflect.TypeFor[keyed](); {
	case t.Implements(of):
		return func(v *T) string { return any(*v).(keyed).IdempotencyKey() }, nil
	case reflect.PointerTo(t).Implements(of):
		return func(v *T) string { return any(v).(keyed).IdempotencyKey() }, nil
	}
	return nil, nil
}
