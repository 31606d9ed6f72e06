package idempotency

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// A result that is not stored as the JSON that it is stands in an object, so that it is JSON for every store and every
// other reader, and is the same however a store writes objects:
//
//	{"@oncekit": "gzip", "data": "H4sI..."}        the result's JSON as gzip in base64
//	{"@oncekit": "reference", "data": "s3://..."}  what ResultStore.Put has returned
//	{"@oncekit": "json", "data": {...}}            the result itself, an object with a member "@oncekit"
//
// Every guard reads all three, and puts a result that would be read as one of them into the third. So an object with that
// member is never a result that stands as it is, whoever stored it with Do or Wrap, and with which options.
const marker = "@oncekit"

const (
	markGzip      = "gzip"
	markReference = "reference"
	markJSON      = "json"
)

func mark(kind string, data any) ([]byte, error) {
	return json.Marshal(struct {
		Kind string `json:"@oncekit"` // before data, as stores write it that sort members
		Data any    `json:"data"`
	}{kind, data})
}

// marked returns the members of data if it is an object with a member named marker, and nil if it is anything else. The name
// counts as JSON reads it: a store may write an escaped one plain.
func marked(data []byte) map[string]json.RawMessage {
	if text := bytes.TrimLeft(data, " \t\r\n"); len(text) == 0 || text[0] != '{' ||
		!bytes.Contains(text, []byte(`"`+marker+`"`)) && !bytes.Contains(text, []byte(`\u`)) {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return nil
	}
	if _, ok := members[marker]; !ok {
		return nil
	}
	return members
}

// pack returns a result as the guard's store keeps it, unless it is too large for that: see ResultOptions.elsewhere. The error is an
// ErrResultNotStored.
func (c *Claim) pack(data []byte) (packed []byte, err error) {
	if c.guard.options.Results.Compress {
		packed, err = compress(data)
	}
	switch {
	case err != nil || packed != nil:
	case marked(data) != nil:
		packed, err = mark(markJSON, json.RawMessage(data))
	default:
		packed = data
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResultNotStored, err)
	}
	return packed, nil
}

// unpack returns the result of which the guard's store keeps the claim's data.
func (c *Claim) unpack(ctx context.Context) ([]byte, error) {
	members := marked(c.data)
	if members == nil {
		return c.data, nil
	}
	var (
		kind, text string
		data       = []byte(members["data"])
		err        = json.Unmarshal(members[marker], &kind)
	)
	switch {
	case err != nil || len(members) != 2 || data == nil:
		err = fmt.Errorf("it has %d members, and %s as %q, want %q and \"data\" alone", len(members), members[marker], marker, marker)
	case kind == markJSON:
		return data, nil
	case kind != markGzip && kind != markReference:
		err = fmt.Errorf("its %q is %q, want %q, %q or %q", marker, kind, markGzip, markReference, markJSON)
	default:
		err = json.Unmarshal(data, &text)
	}
	switch {
	case err != nil:
	case kind == markReference:
		return c.get(ctx, text)
	default:
		if data, err = decompress(text); err == nil {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%w: the work of %q is done, but its result is in a form that cannot be read: %w",
		ErrResultInvalid, c.name(), err)
}
