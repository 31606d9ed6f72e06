package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestLoadOf(t *testing.T) {
	const refused = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}`
	const throttled = `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`
	for _, test := range []struct {
		operation, body string
		status          int
		reply           string
		want            load
	}{
		{"PutItem", `{}`, 200, `{}`, load{1, 1, 0}},
		{"PutItem", `{}`, 400, refused, load{1, 1, 0}},
		{"PutItem", `{}`, 400, throttled, load{1, 0, 0}},
		{"UpdateItem", `{}`, 200, `{}`, load{1, 1, 0}},
		{"DeleteItem", `{}`, 200, `{}`, load{1, 1, 0}},
		{"GetItem", `{"ConsistentRead":true}`, 200, `{}`, load{1, 0, 1}},
		{"GetItem", `{}`, 200, `{}`, load{1, 0, 0.5}},
		{"BatchGetItem", `{"RequestItems":{"a":{"ConsistentRead":true,"Keys":[{},{}]},"b":{"Keys":[{}]}}}`, 200, `{}`, load{1, 0, 2.5}},
		{
			"BatchExecuteStatement", `{"Statements":[{"Statement":"INSERT"},{"Statement":"UPDATE"},{"Statement":"DELETE"}]}`,
			200, `{}`, load{1, 3, 0},
		},
		{
			"BatchExecuteStatement", `{"Statements":[{"Statement":"SELECT","ConsistentRead":true},{"Statement":"SELECT"}]}`,
			200, `{}`, load{1, 0, 1.5},
		},
	} {
		got, err := loadOf(test.operation, []byte(test.body), test.status, []byte(test.reply))
		if err != nil || got != test.want {
			t.Errorf("loadOf(%s, %s, %d) = %v, %v; want %v", test.operation, test.body, test.status, got, err, test.want)
		}
	}
	for _, test := range []struct{ operation, body, want string }{
		{"Scan", `{}`, `operation is "Scan", want one that loadOf has a rule for`},
		{"GetItem", `[]`, "body of GetItem"},
		{"BatchGetItem", `[]`, "body of BatchGetItem"},
		{"BatchExecuteStatement", `[]`, "body of BatchExecuteStatement"},
	} {
		if _, err := loadOf(test.operation, []byte(test.body), 200, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("loadOf(%s, %s): error is %v, want %q", test.operation, test.body, err, test.want)
		}
	}
	if got := (load{1, 10, 10}).price(); got != 12 {
		t.Errorf("price of 10 write units and 10 read units is %v, want 12", got)
	}
}

// TestLoadIsWhatTheServerSays compares the rules with the ConsumedCapacity of answers, where the server has one: none
// comes with a write that its condition refuses.
func TestLoadIsWhatTheServerSays(t *testing.T) {
	p, err := startProxy(strings.TrimPrefix(dynamotest.Start(t), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	client := dynamotest.ClientFor(t, p.url)
	table := dynamotest.Table(t, dynamotest.Client(t))
	key := func(id string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
	}
	total := types.ReturnConsumedCapacityTotal
	statement := func(text string) types.BatchStatementRequest {
		return types.BatchStatementRequest{Statement: aws.String(strings.ReplaceAll(text, "TABLE", `"`+table+`"`))}
	}
	for name, do := range map[string]func() (*types.ConsumedCapacity, error){
		"PutItem": func() (*types.ConsumedCapacity, error) {
			out, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: &table, Item: key("a"), ReturnConsumedCapacity: total,
			})
			return out.ConsumedCapacity, err
		},
		"GetItem": func() (*types.ConsumedCapacity, error) {
			out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
				TableName: &table, Key: key("a"), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: total,
			})
			return out.ConsumedCapacity, err
		},
		"BatchGetItem": func() (*types.ConsumedCapacity, error) {
			out, err := client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{
					table: {ConsistentRead: aws.Bool(true), Keys: []map[string]types.AttributeValue{key("a"), key("nothing")}},
				},
				ReturnConsumedCapacity: total,
			})
			return &out.ConsumedCapacity[0], err
		},
		"BatchExecuteStatement": func() (*types.ConsumedCapacity, error) {
			out, err := client.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{
				Statements: []types.BatchStatementRequest{
					statement(`INSERT INTO TABLE VALUE {'id': 'b'}`),
					statement(`INSERT INTO TABLE VALUE {'id': 'b2'}`),
					statement(`UPDATE TABLE SET x = 1 WHERE id = 'nothing' AND x = 2`), // refused
				},
				ReturnConsumedCapacity: total,
			})
			return &out.ConsumedCapacity[0], err
		},
	} {
		capacity, err := do()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		l, err := p.take()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := aws.ToFloat64(capacity.CapacityUnits); l.Requests != 1 || l.WriteUnits+l.ReadUnits != want {
			t.Errorf("%s: load is %+v, want 1 request and %v units", name, l, want)
		}
	}
}
