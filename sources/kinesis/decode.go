package kinesis

import (
	"fmt"
	"reflect"

	"github.com/oncekit/oncekit/sources/internal/envelope"
	"github.com/oncekit/oncekit/sources/internal/payload"
)

// decoder decodes the data of records.
type decoder[T any] struct {
	payload.Decoder[T]
	maxInflated int // 0: data are not inflated
}

func newDecoder[T any](o *Options) decoder[T] {
	return decoder[T]{payload.NewDecoder[T](o.Decode), o.maxInflated()}
}

// decode decodes the record's data. If it returns an error, they are zero.
func (d *decoder[T]) decode(v *Record[T]) error {
	r := v.r
	if r.problem != nil {
		return r.problem
	}
	if r.sub == whole && (len(r.data) == 0 || r.data[0] != '"') {
		return fmt.Errorf("kinesis: data of record %.200q are %s, want a string of base64", r.id, envelope.KindOf(r.data))
	}
	buffer := payload.Borrow()
	defer payload.Return(buffer)
	data, err := r.child, error(nil)
	if r.sub == whole {
		data, err = r.appendData((*buffer)[:0])
		*buffer = data[:0]
		if err != nil {
			return fmt.Errorf("kinesis: data of record %.200q are no base64: %w", r.id, err)
		}
	}
	if d.maxInflated > 0 && isGzip(data) {
		if data, err = inflate(data, d.maxInflated); err != nil {
			return fmt.Errorf("kinesis: gzip data of record %.200q: %w", r.id, err)
		}
	}
	if err := d.Decode(data, &v.Data); err != nil {
		var zero T
		v.Data = zero
		return fmt.Errorf("kinesis: data of record %.200q are not a valid %v: %w", r.id, reflect.TypeFor[T](), err)
	}
	return nil
}
