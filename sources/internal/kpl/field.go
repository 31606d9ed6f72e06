package kpl

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// wireType is how the value of a field is encoded (https://protobuf.dev/programming-guides/encoding/#structure).
type wireType uint8

const (
	varint          wireType = 0
	fixed64         wireType = 1
	lengthDelimited wireType = 2
	fixed32         wireType = 5
)

// maxFieldNumber is the largest number of a field of protocol buffers.
const maxFieldNumber = 1<<29 - 1

var (
	errCutOff   = errors.New("number is cut off, want a last byte below 0x80")
	errOverflow = errors.New("number has more than 64 bits, want at most 64")
)

// reader reads the fields of a message, one after the other.
type reader struct {
	message []byte
	offset  int   // of what is not yet read
	err     error // why there is no next field although there are bytes

	// The field that next has read.
	number   uint64
	wireType wireType
	value    uint64 // of a varint
	bytes    []byte // of any other field: what it holds, never nil, without room to append to
}

// next reads the next field and reports whether there is one. There is none at the end of the message, and where it is
// broken: err then says how, and at which offset of the message.
func (r *reader) next() bool {
	if r.offset == len(r.message) || r.err != nil {
		return false
	}
	start := r.offset
	tag, err := r.varint()
	if err != nil {
		return r.fail("tag at offset %d: %w", start, err)
	}
	if r.number = tag >> 3; r.number < 1 || r.number > maxFieldNumber {
		return r.fail("field number at offset %d is %d, want 1 to %d", start, r.number, maxFieldNumber)
	}
	var length uint64
	switch r.wireType = wireType(tag & 7); r.wireType {
	case varint:
		if r.value, err = r.varint(); err != nil {
			return r.fail("value of field %d at offset %d: %w", r.number, start, err)
		}
		return true
	case lengthDelimited:
		if length, err = r.varint(); err != nil {
			return r.fail("length of field %d at offset %d: %w", r.number, start, err)
		}
	case fixed64:
		length = 8
	case fixed32:
		length = 4
	default:
		return r.fail("field %d at offset %d has wire type %d, want 0, 1, 2 or 5", r.number, start, r.wireType)
	}
	left := len(r.message) - r.offset
	if length > uint64(left) {
		return r.fail("field %d at offset %d has %d bytes, want at most the %d that are left", r.number, start, length, left)
	}
	end := r.offset + int(length)
	r.bytes = r.message[r.offset:end:end]
	r.offset = end
	return true
}

// varint reads a number of up to ten bytes. Most have one.
func (r *reader) varint() (uint64, error) {
	if r.offset < len(r.message) && r.message[r.offset] < 0x80 {
		r.offset++
		return uint64(r.message[r.offset-1]), nil
	}
	value, n := binary.Uvarint(r.message[r.offset:])
	switch {
	case n == 0:
		return 0, errCutOff
	case n < 0:
		return 0, errOverflow
	}
	r.offset += n
	return value, nil
}

// want ends the reading with an error if the field, which has the name, is of another wire type.
func (r *reader) want(name string, want wireType) {
	if r.wireType != want {
		r.fail("%s has wire type %d, want %d", name, r.wireType, want)
	}
}

func (r *reader) fail(format string, arguments ...any) bool {
	r.err = fmt.Errorf(format, arguments...)
	return false
}
