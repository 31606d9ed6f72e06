package dynamostore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

// protocols returns the protocol of ClientOptions and the SDK's.
func protocols() (ours, sdk smithyhttp.ClientProtocol) {
	sdk = awsjson.New10(schemas.DynamoDB_20120810)
	o := dynamodb.Options{Protocol: sdk}
	dynamostore.ClientOptions(&o)
	return o.Protocol, sdk
}

// sent is a request on the wire.
type sent struct {
	Method, Path string
	Header       http.Header
	Length       int64
	Body         any // as encoding/json has it
}

func serialize(t rapid.TB, p smithyhttp.ClientProtocol, schema *smithy.OperationSchema, in smithy.Serializable) sent {
	r := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	if err := p.SerializeRequest(context.Background(), schema, in, r); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.GetStream())
	if err != nil {
		t.Fatal(err)
	}
	if r.ContentLength != int64(len(body)) {
		t.Fatalf("the length is %d; want that of the body, %d", r.ContentLength, len(body))
	}
	s := sent{Method: r.Method, Path: r.URL.Path, Header: r.Header, Length: r.ContentLength}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	if err := decoder.Decode(&s.Body); err != nil || decoder.More() {
		t.Fatalf("the body is not one JSON value (%v):\n%s", err, body)
	}
	return s
}

func operation(op, input, output *smithy.Schema) *smithy.OperationSchema {
	return smithy.NewOperationSchema(op, input, output)
}

// drawer draws parts of requests.
type drawer struct{ *rapid.T }

func (d drawer) text() string {
	return rapid.OneOf(rapid.StringN(0, 12, -1), rapid.SampledFrom([]string{
		"", "a", `"\/`, "<&>", "\x00\x1f\x7f", "\u2028\u2029", "\xff", "a\xffb", "\U0001F600", "line\nbreak\t\r\b\f", strings.Repeat("x", 100),
	})).Draw(d.T, "text")
}

func (d drawer) texts() []string { return list(d, d.text) }

func list[E any](d drawer, draw func() E) []E {
	n := rapid.IntRange(-1, 3).Draw(d.T, "length")
	if n < 0 {
		return nil
	}
	l := make([]E, n)
	for i := range l {
		l[i] = draw()
	}
	return l
}

func object[E any](d drawer, draw func() E) map[string]E {
	n := rapid.IntRange(-1, 3).Draw(d.T, "size")
	if n < 0 {
		return nil
	}
	m := make(map[string]E)
	for range n {
		m[d.text()] = draw()
	}
	return m
}

func maybe[E any](d drawer, draw func() E) *E {
	if rapid.Bool().Draw(d.T, "none") {
		return nil
	}
	return new(draw())
}

func (d drawer) bool() bool { return rapid.Bool().Draw(d.T, "bool") }

func (d drawer) bytes() []byte { return list(d, func() byte { return rapid.Byte().Draw(d.T, "byte") }) }

func (d drawer) value() types.AttributeValue { return d.nested(3) }

func (d drawer) nested(depth int) types.AttributeValue {
	kinds := 10
	if depth == 0 {
		kinds = 8
	}
	inner := func() types.AttributeValue { return d.nested(depth - 1) }
	switch rapid.IntRange(0, kinds-1).Draw(d.T, "kind") {
	case 0:
		return &types.AttributeValueMemberS{Value: d.text()}
	case 1:
		return &types.AttributeValueMemberN{Value: d.text()}
	case 2:
		return &types.AttributeValueMemberB{Value: d.bytes()}
	case 3:
		return &types.AttributeValueMemberBOOL{Value: d.bool()}
	case 4:
		return &types.AttributeValueMemberNULL{Value: d.bool()}
	case 5:
		return &types.AttributeValueMemberSS{Value: d.texts()}
	case 6:
		return &types.AttributeValueMemberNS{Value: d.texts()}
	case 7:
		return &types.AttributeValueMemberBS{Value: list(d, d.bytes)}
	case 8:
		return &types.AttributeValueMemberL{Value: list(d, inner)}
	default:
		return &types.AttributeValueMemberM{Value: object(d, inner)}
	}
}

func (d drawer) item() map[string]types.AttributeValue { return object(d, d.value) }
func (d drawer) names() map[string]string              { return object(d, d.text) }

func (d drawer) expected() types.ExpectedAttributeValue {
	return types.ExpectedAttributeValue{
		AttributeValueList: list(d, d.value), Exists: maybe(d, d.bool), Value: d.value(),
		ComparisonOperator: types.ComparisonOperator(d.text()),
	}
}

func (d drawer) update() types.AttributeValueUpdate {
	return types.AttributeValueUpdate{Action: types.AttributeAction(d.text()), Value: d.value()}
}

func (d drawer) action() types.TransactWriteItem {
	var a types.TransactWriteItem
	if d.bool() {
		a.ConditionCheck = &types.ConditionCheck{
			ConditionExpression: maybe(d, d.text), Key: d.item(), TableName: maybe(d, d.text), ExpressionAttributeNames: d.names()}
	}
	if d.bool() {
		a.Delete = &types.Delete{Key: d.item(), TableName: maybe(d, d.text), ExpressionAttributeValues: d.item()}
	}
	if d.bool() {
		a.Put = &types.Put{Item: d.item(), TableName: maybe(d, d.text),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailure(d.text())}
	}
	if d.bool() {
		a.Update = &types.Update{Key: d.item(), UpdateExpression: maybe(d, d.text), ExpressionAttributeValues: d.item()}
	}
	return a
}

// TestEncoding compares the requests of the operations of Client with those of the SDK's protocol.
func TestEncoding(t *testing.T) {
	ours, sdk := protocols()
	rapid.Check(t, func(t *rapid.T) {
		d := drawer{t}
		requests := []struct {
			schema *smithy.OperationSchema
			in     smithy.Serializable
		}{
			{operation(schemas.PutItem, schemas.PutItemInput, schemas.PutItemOutput), &dynamodb.PutItemInput{
				Item: d.item(), TableName: maybe(d, d.text), ConditionExpression: maybe(d, d.text),
				ConditionalOperator: types.ConditionalOperator(d.text()), Expected: object(d, d.expected),
				ExpressionAttributeNames: d.names(), ExpressionAttributeValues: d.item(),
				ReturnConsumedCapacity: types.ReturnConsumedCapacity(d.text()), ReturnValues: types.ReturnValue(d.text()),
			}},
			{operation(schemas.UpdateItem, schemas.UpdateItemInput, schemas.UpdateItemOutput), &dynamodb.UpdateItemInput{
				Key: d.item(), TableName: maybe(d, d.text), UpdateExpression: maybe(d, d.text),
				AttributeUpdates: object(d, d.update), ExpressionAttributeNames: d.names(),
			}},
			{operation(schemas.DeleteItem, schemas.DeleteItemInput, schemas.DeleteItemOutput), &dynamodb.DeleteItemInput{
				Key: d.item(), TableName: maybe(d, d.text), ConditionExpression: maybe(d, d.text),
			}},
			{operation(schemas.GetItem, schemas.GetItemInput, schemas.GetItemOutput), &dynamodb.GetItemInput{
				Key: d.item(), TableName: maybe(d, d.text), AttributesToGet: d.texts(), ConsistentRead: maybe(d, d.bool),
			}},
			{operation(schemas.BatchGetItem, schemas.BatchGetItemInput, schemas.BatchGetItemOutput), &dynamodb.BatchGetItemInput{
				RequestItems: object(d, func() types.KeysAndAttributes {
					return types.KeysAndAttributes{Keys: list(d, d.item), ConsistentRead: maybe(d, d.bool),
						ProjectionExpression: maybe(d, d.text), ExpressionAttributeNames: d.names()}
				}),
			}},
			{operation(schemas.BatchExecuteStatement, schemas.BatchExecuteStatementInput, schemas.BatchExecuteStatementOutput),
				&dynamodb.BatchExecuteStatementInput{Statements: list(d, func() types.BatchStatementRequest {
					return types.BatchStatementRequest{Statement: maybe(d, d.text), Parameters: list(d, d.value),
						ConsistentRead: maybe(d, d.bool)}
				})}},
			{operation(schemas.TransactWriteItems, schemas.TransactWriteItemsInput, schemas.TransactWriteItemsOutput),
				&dynamodb.TransactWriteItemsInput{TransactItems: list(d, d.action), ClientRequestToken: maybe(d, d.text)}},
		}
		r := requests[rapid.IntRange(0, len(requests)-1).Draw(t, "operation")]
		want, got := serialize(t, sdk, r.schema, r.in), serialize(t, ours, r.schema, r.in)
		// The same character can be written in several ways, which take different room.
		want.Length, got.Length = 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.schema.ID().Name, diff)
		}
	})
}

// unknownShape has a member of a kind that no request of Client's operations has. The SDK's may have one day.
type unknownShape struct{}

func (unknownShape) Serialize(s smithy.ShapeSerializer) {
	s.WriteStruct(schemas.QueryInput)
	s.WriteInt32(schemas.QueryInput_Limit, 7)
	s.CloseStruct()
}

// TestEncodingOfOthers has operations and shapes that ClientOptions does not know left to the SDK's protocol.
func TestEncodingOfOthers(t *testing.T) {
	ours, sdk := protocols()
	for name, r := range map[string]struct {
		schema *smithy.OperationSchema
		in     smithy.Serializable
	}{
		"another operation": {operation(schemas.Query, schemas.QueryInput, schemas.QueryOutput),
			&dynamodb.QueryInput{Limit: aws.Int32(7), TableName: aws.String("t")}},
		"an unknown shape": {operation(schemas.PutItem, schemas.PutItemInput, schemas.PutItemOutput), unknownShape{}},
	} {
		if diff := cmp.Diff(serialize(t, sdk, r.schema, r.in), serialize(t, ours, r.schema, r.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUserProtocol has another version of the protocol left alone.
func TestUserProtocol(t *testing.T) {
	for name, want := range map[string]smithyhttp.ClientProtocol{
		"version 1.1":     awsjson.New11(schemas.DynamoDB_20120810),
		"another service": awsjson.New10(&smithy.ServiceSchema{Schema: schemas.PutItemInput}),
		"nil":             (*awsjson.Protocol)(nil),
	} {
		o := dynamodb.Options{Protocol: want}
		dynamostore.ClientOptions(&o)
		if o.Protocol != want {
			t.Errorf("%s: the protocol is %T; want the user's", name, o.Protocol)
		}
	}
}

// TestDecoding compares what replies become with what the SDK makes of them.
func TestDecoding(t *testing.T) {
	ours, sdk := protocols()
	put := operation(schemas.PutItem, schemas.PutItemInput, schemas.PutItemOutput)
	for name, r := range map[string]struct {
		status int
		length int64
		body   string
	}{
		"empty":              {200, 2, "{}"},
		"nothing":            {200, 0, ""},
		"of no known length": {200, -1, "{}"},
		"an item":            {200, 31, `{"Attributes":{"a":{"S":"b"}}}` + "\n"},
		"other two bytes":    {200, 2, "[]"},
		"two digits":         {200, 2, "12"},
		"cut short":          {200, 2, "{"},
		"nothing of two":     {200, 2, ""},
		"longer than said":   {200, 2, `[]{}`},
		"an error":           {400, 2, "{}"},
		"an error with code": {400, 40, `{"__type":"ConditionalCheckFailedException"}`},
	} {
		outcome := func(p smithyhttp.ClientProtocol) (string, bool) {
			closed := false
			body := struct {
				io.Reader
				closer
			}{strings.NewReader(r.body), func() { closed = true }}
			response := &smithyhttp.Response{Response: &http.Response{
				StatusCode: r.status, ContentLength: r.length, Header: http.Header{}, Body: body}}
			var out dynamodb.PutItemOutput
			err := p.DeserializeResponse(context.Background(), put, dynamodb.TypeRegistry, response, &out)
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			text, jsonErr := json.Marshal(out)
			if jsonErr != nil {
				t.Fatal(jsonErr)
			}
			return fmt.Sprintf("%s, error %v", text, err), closed
		}
		want, _ := outcome(sdk)
		got, closed := outcome(ours)
		if got != want || !closed {
			t.Errorf("%s: %s, body closed: %t; want %s, true", name, got, closed, want)
		}
	}
}

// closer is an io.Closer.
type closer func()

func (c closer) Close() error {
	c()
	return nil
}
