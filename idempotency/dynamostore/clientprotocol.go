package dynamostore

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
	"github.com/go-json-experiment/json/jsontext"
)

// encodedOperations are the operations whose requests protocol writes: those of Client.
var encodedOperations = []string{
	"PutItem", "UpdateItem", "DeleteItem", "GetItem", "BatchGetItem", "BatchExecuteStatement", "TransactWriteItems",
}

// protocol is the SDK's protocol, but for writing the requests of Client's operations and reading empty replies. The
// SDK's takes a new buffer and a new stack for each, which are larger than the request of one item.
type protocol struct {
	smithyhttp.ClientProtocol // the SDK's
}

// writesAlike reports whether a protocol writes a request as sdk does. It does not if sdk is of another version or for
// another service, or if the SDK has changed.
func writesAlike(sdk *awsjson.Protocol) bool {
	if sdk == nil {
		return false
	}
	table := "t"
	in := &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{"k": text("v")}}
	written := func(p smithyhttp.ClientProtocol) (http.Header, string) {
		r, ok := smithyhttp.NewStackRequest().(*smithyhttp.Request)
		if !ok {
			return nil, ""
		}
		operation := smithy.NewOperationSchema(schemas.PutItem, schemas.PutItemInput, schemas.PutItemOutput)
		if err := p.SerializeRequest(context.Background(), operation, in, r); err != nil {
			return nil, ""
		}
		body, err := io.ReadAll(r.GetStream())
		if err != nil {
			return nil, ""
		}
		return r.Header, r.Method + r.URL.Path + string(body)
	}
	header, request := written(sdk)
	ourHeader, ourRequest := written(protocol{sdk})
	return header != nil && maps.EqualFunc(header, ourHeader, slices.Equal) && request == ourRequest
}

// SerializeRequest implements smithyhttp.ClientProtocol.
func (p protocol) SerializeRequest(
	ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable, r *smithyhttp.Request,
) error {
	if !slices.Contains(encodedOperations, schema.ID().Name) {
		return p.ClientProtocol.SerializeRequest(ctx, schema, in, r)
	}
	body, ok := encode(in)
	if !ok {
		return p.ClientProtocol.SerializeRequest(ctx, schema, in, r)
	}
	streamed, err := r.SetStream(bytes.NewReader(body)) // a copy, which costs the less the fewer headers there are
	if err != nil {
		return err
	}
	*r = *streamed
	r.Method = http.MethodPost
	if r.URL.Path == "" {
		r.URL.Path = "/"
	}
	values := []string{schemas.DynamoDB_20120810.Schema.ID().Name + "." + schema.ID().Name, "application/x-amz-json-1.0"}
	r.Header["X-Amz-Target"], r.Header["Content-Type"] = values[:1:1], values[1:]
	return nil
}

// DeserializeResponse implements smithyhttp.ClientProtocol. The reply to a write that returns no item is {}, which says
// nothing.
func (p protocol) DeserializeResponse(
	ctx context.Context, schema *smithy.OperationSchema, types *smithy.TypeRegistry, r *smithyhttp.Response,
	out smithy.Deserializable,
) error {
	if r.StatusCode == http.StatusOK && r.ContentLength == int64(len(empty)) {
		var read [len(empty)]byte
		n, err := io.ReadFull(r.Body, read[:])
		if err == nil && string(read[:]) == empty {
			return nil
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(read[:n]), r.Body), r.Body}
	}
	return p.ClientProtocol.DeserializeResponse(ctx, schema, types, r, out)
}

const empty = "{}"

// encode returns the JSON of in, and false if in has shapes that encoder does not know. An encoder panics at these: an
// SDK that brings some to an operation must find the SDK's own protocol there.
func encode(in smithy.Serializable) (body []byte, ok bool) {
	e := encoders.Get().(*encoder)
	defer func() {
		if recover() != nil {
			body, ok = nil, false
			return // the encoder is not reused: something may still hold it
		}
		if cap(e.json) <= maxEncoder {
			encoders.Put(e)
		}
	}()
	e.json, e.members = e.json[:0], e.members[:0]
	in.Serialize(e)
	// net/http may read a body after the call has ended. A body of a pool would be another request's by then.
	return bytes.Clone(e.json), true
}

const maxEncoder = 64 << 10 // bytes; larger ones are left to the garbage collector

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// encoder writes shapes as the JSON of the AWS JSON protocol: members by their name, bytes in base64
// (https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html). It has the shapes that requests of
// encodedOperations have, and not numbers, times and documents: DynamoDB's numbers are strings.
type encoder struct {
	smithy.ShapeSerializer // nil, so that the rest panics
	json                   []byte
	members                []bool // for each object or array that is open: whether its values are named by their schema
}

// Bytes implements smithy.ShapeSerializer.
func (e *encoder) Bytes() []byte { return e.json }

// begin writes what comes before a value of this schema: a comma, and the name of a member.
func (e *encoder) begin(schema *smithy.Schema) {
	if n := len(e.json); n == 0 || e.json[n-1] == ':' {
		return
	}
	e.comma()
	if e.members[len(e.members)-1] {
		e.name(schema)
	}
}

func (e *encoder) comma() {
	switch e.json[len(e.json)-1] {
	case '{', '[':
	default:
		e.json = append(e.json, ',')
	}
}

func (e *encoder) name(schema *smithy.Schema) {
	e.json = append(append(append(e.json, '"'), schema.MemberName()...), `":`...)
}

func (e *encoder) open(schema *smithy.Schema, bracket byte, members bool) {
	e.begin(schema)
	e.json = append(e.json, bracket)
	e.members = append(e.members, members)
}

func (e *encoder) close(bracket byte) {
	e.json = append(e.json, bracket)
	e.members = e.members[:len(e.members)-1]
}

// WriteStruct implements smithy.ShapeSerializer.
func (e *encoder) WriteStruct(schema *smithy.Schema) { e.open(schema, '{', true) }

// CloseStruct implements smithy.ShapeSerializer.
func (e *encoder) CloseStruct() { e.close('}') }

// WriteUnion implements smithy.ShapeSerializer.
func (e *encoder) WriteUnion(schema, variant *smithy.Schema) {
	e.open(schema, '{', true)
	e.name(variant)
}

// CloseUnion implements smithy.ShapeSerializer.
func (e *encoder) CloseUnion() { e.close('}') }

// WriteMap implements smithy.ShapeSerializer.
func (e *encoder) WriteMap(schema *smithy.Schema) { e.open(schema, '{', false) }

// WriteKey implements smithy.ShapeSerializer.
func (e *encoder) WriteKey(_ *smithy.Schema, key string) {
	e.comma()
	e.quote(key)
	e.json = append(e.json, ':')
}

// CloseMap implements smithy.ShapeSerializer.
func (e *encoder) CloseMap() { e.close('}') }

// WriteList implements smithy.ShapeSerializer.
func (e *encoder) WriteList(schema *smithy.Schema) { e.open(schema, '[', false) }

// CloseList implements smithy.ShapeSerializer.
func (e *encoder) CloseList() { e.close(']') }

// WriteString implements smithy.ShapeSerializer.
func (e *encoder) WriteString(schema *smithy.Schema, v string) {
	e.begin(schema)
	e.quote(v)
}

func (e *encoder) quote(s string) {
	e.json, _ = jsontext.AppendQuote(e.json, s) // invalid UTF-8 is replaced, as the SDK does
}

// WriteBool implements smithy.ShapeSerializer.
func (e *encoder) WriteBool(schema *smithy.Schema, v bool) {
	e.begin(schema)
	if v {
		e.json = append(e.json, "true"...)
	} else {
		e.json = append(e.json, "false"...)
	}
}

// WriteBlob implements smithy.ShapeSerializer.
func (e *encoder) WriteBlob(schema *smithy.Schema, v []byte) {
	if v == nil {
		e.WriteNil(schema)
		return
	}
	e.begin(schema)
	e.json = append(base64.StdEncoding.AppendEncode(append(e.json, '"'), v), '"')
}

// WriteNil implements smithy.ShapeSerializer.
func (e *encoder) WriteNil(schema *smithy.Schema) {
	e.begin(schema)
	e.json = append(e.json, "null"...)
}
