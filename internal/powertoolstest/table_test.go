package powertoolstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/idempotency/powertools"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/powertoolstest"
)

// The function that is written twice, and what it works on. Its key is the order, what must not change the amount.
const (
	function = "orders"
	payload  = `{"order":"o-1","amount":5}`
	receipt  = `{"receipt":"r-1"}`
)

// shared is a table that a function in TypeScript and one in Go share, and a peer that runs the one in TypeScript.
type shared struct {
	*powertoolstest.Peer
	client  *dynamodb.Client
	table   string
	options []func(*dynamostore.Options)
}

func newShared(t *testing.T, options ...func(*dynamostore.Options)) *shared {
	client := dynamotest.Client(t)
	return &shared{powertoolstest.Start(t), client, dynamotest.Table(t, client, options...), options}
}

// typeScript returns the function in TypeScript, whose invocations have a minute left.
func (s *shared) typeScript(change ...func(*powertoolstest.Function)) powertoolstest.Function {
	f := powertoolstest.Function{
		Name: function, Table: s.table, Remaining: time.Minute, Config: powertoolstest.Config{EventKey: "order"},
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

// guard returns that of the function in Go.
func (s *shared) guard(t *testing.T, options ...func(*idempotency.Options)) *idempotency.Guard {
	t.Helper()
	store := dynamostore.New(s.client, s.table, s.options...)
	guard, err := idempotency.New(powertools.TypeScript.Namespace(function, ""), store, options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// work is what a payload is to Go: the key that Powertools makes of its order, and the fingerprint of its amount.
func work(t *testing.T, payload string) (key, fingerprint string) {
	t.Helper()
	var p struct{ Order, Amount json.RawMessage }
	if err := json.Unmarshal([]byte(payload), &p); err != nil {
		t.Fatal(err)
	}
	keys, err := powertools.NewKeys(powertools.TypeScript)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = keys.Key(p.Order); err != nil {
		t.Fatal(err)
	}
	if fingerprint, err = keys.Fingerprint(p.Amount); err != nil {
		t.Fatal(err)
	}
	return key, fingerprint
}

// do calls the function in Go, which returns the result, in JSON.
func do(t *testing.T, guard *idempotency.Guard, payload, result string) powertoolstest.Outcome {
	t.Helper()
	key, _ := work(t, payload)
	return doAs(t, guard, key, "", result)
}

func doAs(t *testing.T, guard *idempotency.Guard, key, fingerprint, result string) powertoolstest.Outcome {
	t.Helper()
	var o powertoolstest.Outcome
	r, err := idempotency.Do(t.Context(), guard, key, func(context.Context) (json.RawMessage, error) {
		o.Ran = true
		return json.RawMessage(result), nil
	}, func(o *idempotency.CallOptions) { o.Fingerprint = fingerprint })
	o.Result, o.Err = string(r.Value), err
	return o
}

// claim claims the payload's work in Go, as a function that is under way has.
func claim(t *testing.T, guard *idempotency.Guard, payload string) *idempotency.Claim {
	t.Helper()
	key, _ := work(t, payload)
	c, err := guard.Claim(t.Context(), idempotency.Request{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// row is the item of a payload.
type row map[string]types.AttributeValue

func (s *shared) key(t *testing.T, payload string) row {
	key, _ := work(t, payload)
	return row{"id": &types.AttributeValueMemberS{Value: function + "#" + key}}
}

// row returns the payload's item, nil if there is none.
func (s *shared) row(t *testing.T, payload string) row {
	t.Helper()
	out, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.key(t, payload), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// set changes a number of the payload's item, which has to be there.
func (s *shared) set(t *testing.T, payload, attribute string, n int64) {
	t.Helper()
	_, err := s.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: s.key(t, payload),
		ConditionExpression: aws.String("attribute_exists(#id)"), UpdateExpression: aws.String("SET #n = :n"),
		ExpressionAttributeNames:  map[string]string{"#id": "id", "#n": attribute},
		ExpressionAttributeValues: row{":n": &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The numbers that end a lease, and a life.
const (
	lease  = "in_progress_expiration" // epoch milliseconds
	expiry = "expiration"             // epoch seconds
)

// endLease has the lease of the payload's claim end ten seconds ago.
func (s *shared) endLease(t *testing.T, payload string) {
	t.Helper()
	s.set(t, payload, lease, time.Now().Add(-10*time.Second).UnixMilli())
}

// expire has the payload's item expire ten seconds ago.
func (s *shared) expire(t *testing.T, payload string) {
	t.Helper()
	s.set(t, payload, expiry, time.Now().Add(-10*time.Second).Unix())
}

// text returns an attribute that is a string or a number, "" if there is none.
func (r row) text(name string) string {
	switch v := r[name].(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	default:
		return ""
	}
}

// ran and replayed check what became of a call.
func ran(t *testing.T, who string, o powertoolstest.Outcome, result string) {
	t.Helper()
	if !o.Ran || o.Err != nil || o.Result != result {
		t.Errorf("%s: the call ran: %v, returned %s, %v; want it run, and %s", who, o.Ran, o.Result, o.Err, result)
	}
}

func replayed(t *testing.T, who string, o powertoolstest.Outcome, result string) {
	t.Helper()
	if o.Ran || o.Err != nil || o.Result != result {
		t.Errorf("%s: the call ran: %v, returned %s, %v; want a replay, and %s", who, o.Ran, o.Result, o.Err, result)
	}
}

// threw checks that TypeScript did not run the function and threw an error of that name.
func threw(t *testing.T, o powertoolstest.Outcome, name string) {
	t.Helper()
	if o.Ran || !powertoolstest.Threw(o.Err, name) {
		t.Errorf("TypeScript: the call ran: %v, returned %s, %v; want it not run, and %s", o.Ran, o.Result, o.Err, name)
	}
}

// refused checks that Go did not run the function and returned the error.
func refused(t *testing.T, o powertoolstest.Outcome, want error) {
	t.Helper()
	if o.Ran || !errors.Is(o.Err, want) {
		t.Errorf("Go: the call ran: %v, returned %s, %v; want it not run, and %v", o.Ran, o.Result, o.Err, want)
	}
}
