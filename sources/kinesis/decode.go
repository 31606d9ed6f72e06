package kinesis

import (
	"bytes"
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
	if v.r.problem != nil {
		return v.r.problem
	}
	buffer := payload.Borrow()
	defer payload.Return(buffer)
	data, err := d.data(v.r, buffer)
	if err != nil {
		return err
	}
	if err := d.Decode(data, &v.Data); err != nil {
		var zero T
		v.Data = zero
		return fmt.Errorf("kinesis: data of record %.200q are not a valid %v: %w", v.r.id, reflect.TypeFor[T](), err)
	}
	return nil
}

// data returns the bytes that are decoded. They may be those of the record, or in the buffer.
func (d *decoder[T]) data(r *record, buffer *[]byte) ([]byte, error) {
	if r.sub == whole && (len(r.data) == 0 || r.data[0] != '"') {
		return nil, fmt.Errorf("kinesis: data of record %.200q are %s, want a string of base64", r.id, envelope.KindOf(r.data))
	}
	data, err := r.child, error(nil)
	if r.sub == whole {
		data, err = r.appendData((*buffer)[:0])
		*buffer = data[:0]
		if err != nil {
			return nil, fmt.Errorf("kinesis: data of record %.200q are no base64: %w", r.id, err)
		}
	}
	if d.maxInflated > 0 && isGzip(data) {
		if data, err = inflate(data, d.maxInflated); err != nil {
			return nil, fmt.Errorf("kinesis: gzip data of record %.200q: %w", r.id, err)
		}
	}
	return data, nil
}

// payload returns a copy of the bytes that are decoded.
func (d *decoder[T]) payload(v *Record[T]) ([]byte, error) {
	data, err := d.data(v.r, new([]byte))
	if v.r.sub != whole {
		data = bytes.Clone(data)
	}
	return data, err
}
