package idempotency

import (
	"errors"
	"fmt"
	"reflect"
)

// DefaultStoreOver is the size in bytes over which a result goes to ResultOptions.Store.
const DefaultStoreOver = 64 << 10

// ResultOptions say how a guard keeps the results of Do and Wrap. They are options of the guard, and not of the call, since
// whoever uses its namespace has to find what another one kept. The zero value keeps all of them in the guard's own store,
// as the JSON that they are.
type ResultOptions struct {
	// Compress stores a result as gzip in base64 where its JSON has more than 1,024 bytes, no more than 8 MiB, and gets
	// smaller so. In DynamoDB it then costs less to write and to find again, by the KB, and more fits under the limit of
	// 400 KB an item. Guards without it read such a result; other tools see an object with the member "@oncekit" in its
	// place. Default false.
	Compress bool

	// Store keeps the results that are over StoreOver, and the guard's store a reference to each. Every guard of the
	// namespace needs the same one. A guard without one that finds a reference returns a *ResultNotStoredError. Nil means
	// that all results are in the guard's store.
	Store ResultStore

	// StoreOver is how many bytes a result may have in the guard's store, as it would be there: compressed with Compress.
	// 0 means DefaultStoreOver. Negative means that all results go to Store. It needs Store.
	StoreOver int
}

func (o *ResultOptions) validate() error {
	var errs []error
	if v := reflect.ValueOf(o.Store); v.Kind() == reflect.Pointer && v.IsNil() {
		errs = append(errs, fmt.Errorf("idempotency: Options.Results.Store is a nil %T, want a ResultStore, or nil for none", o.Store))
	}
	if o.Store == nil && o.StoreOver != 0 {
		errs = append(errs, fmt.Errorf("idempotency: Options.Results.StoreOver is %d, want 0 where Options.Results.Store is nil", o.StoreOver))
	}
	return errors.Join(errs...)
}

// elsewhere reports whether a result goes to Store that would be packed in the guard's store, nil for none.
func (o *ResultOptions) elsewhere(packed []byte) bool {
	limit := o.StoreOver
	if limit == 0 {
		limit = DefaultStoreOver
	}
	return packed != nil && o.Store != nil && len(packed) > limit
}
