package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/audit/audit"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// orders is a table with a real stream.
type orders struct {
	*testing.T
	client  *dynamodb.Client
	table   string
	changes map[string][]string // what each order's rows should say, see line
}

// put puts an order into the table.
func (o *orders) put(id string, version int64, status string) {
	o.Helper()
	item, err := attributevalue.MarshalMap(audit.Order{ID: id, Version: version, Customer: "ada", Status: status, Total: 8900})
	if err != nil {
		o.Fatal(err)
	}
	o.putItem(item)
	operation := dynamodbstream.Modify
	if version == 1 {
		operation = dynamodbstream.Insert
	}
	o.changes[id] = append(o.changes[id], line(operation, version, status))
}

func (o *orders) putItem(item map[string]types.AttributeValue) {
	o.Helper()
	if _, err := o.client.PutItem(o.Context(), &dynamodb.PutItemInput{TableName: &o.table, Item: item}); err != nil {
		o.Fatal(err)
	}
}

// delete deletes an order from the table.
func (o *orders) delete(id string, version int64) {
	o.Helper()
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
	if _, err := o.client.DeleteItem(o.Context(), &dynamodb.DeleteItemInput{TableName: &o.table, Key: key}); err != nil {
		o.Fatal(err)
	}
	o.changes[id] = append(o.changes[id], line(dynamodbstream.Remove, version, ""))
}

// line says in short what a row of the log says.
func line(operation dynamodbstream.Operation, version int64, status string) string {
	return fmt.Sprintf("%s version %d, status %q", operation, version, status)
}

// logged returns what the table of the log has of each order, in the order of its keys.
func logged(t *testing.T, client *dynamodb.Client, table string, orders map[string][]string) map[string][]string {
	t.Helper()
	lines := make(map[string][]string)
	for id := range orders {
		out, err := client.Query(t.Context(), &dynamodb.QueryInput{
			TableName: &table, KeyConditionExpression: aws.String("orderId = :id"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":id": &types.AttributeValueMemberS{Value: id}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var entries []audit.Entry
		if err := attributevalue.UnmarshalListOfMaps(out.Items, &entries); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			status := ""
			for _, d := range e.Differences {
				if d.Attribute == "status" {
					status = d.To
				}
			}
			lines[id] = append(lines[id], line(e.Operation, e.Version, status))
		}
	}
	return lines
}

// flakyLog takes down what it appends, and refuses the first attempt of some changes.
type flakyLog struct {
	audit.TableLog

	mu       sync.Mutex
	tried    map[string]bool // by event
	refused  int
	appended []audit.Entry
}

func (l *flakyLog) Append(ctx context.Context, e audit.Entry) error {
	l.mu.Lock()
	first := !l.tried[e.EventID]
	l.tried[e.EventID] = true
	refuse := first && len(l.tried)%5 == 0
	if refuse {
		l.refused++
	}
	l.mu.Unlock()
	if refuse {
		return errors.New("log is throttled")
	}
	if err := l.TableLog.Append(ctx, e); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appended = append(l.appended, e)
	return nil
}

// TestStream reads a real stream, with its sequence numbers, and keeps log and claims in tables on the same server.
func TestStream(t *testing.T) {
	client := dynamotest.Client(t)
	name, streamARN := dynamotest.StreamTable(t, client, "id", "")
	o := &orders{T: t, client: client, table: name, changes: make(map[string][]string)}
	const count = 15
	for version, status := range []string{"placed", "paid", "packed", "shipped"} {
		for i := range count {
			o.put(fmt.Sprintf("order-%d", i+1), int64(version+1), status)
		}
	}
	for i := range count / 3 {
		o.delete(fmt.Sprintf("order-%d", i+1), 4)
	}
	o.putItem(map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "broken"}, "total": &types.AttributeValueMemberS{Value: "89,00 EUR"},
	})
	const changes = 4*count + count/3

	auditTable, _ := dynamotest.StreamTable(t, client, audit.PartitionKey, audit.SortKey)
	log := &flakyLog{TableLog: audit.TableLog{Client: client, Table: auditTable}, tried: make(map[string]bool)}
	guard, err := idempotency.New("audit", dynamostore.New(client, dynamotest.Table(t, client)),
		func(o *idempotency.Options) { o.CountAttempts = true })
	if err != nil {
		t.Fatal(err)
	}
	var deadLettered []string
	sink := func(_ context.Context, r *batch.Record, cause error) error {
		deadLettered = append(deadLettered, cause.Error()) // of one change, so one at a time
		return nil
	}
	handler, err := audit.NewHandler(log, guard, sink, func(o *dynamodbstream.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
	})
	if err != nil {
		t.Fatal(err)
	}

	// The answer to the third invocation is lost, so that its batch comes again.
	invocations := 0
	poll := func(attempt string) {
		t.Helper()
		shards, err := dynamotest.Shards(t.Context(), dynamotest.StreamsClient(t), streamARN)
		if err != nil {
			t.Fatal(err)
		}
		for _, shard := range shards {
			if _, err := shard.Poll(t.Context(), lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
				answer, err := handler.Invoke(ctx, payload)
				if invocations++; invocations == 3 {
					return nil, errors.New("the answer is lost")
				}
				return answer, err
			}), 20); err != nil {
				t.Fatalf("%s: %v", attempt, err)
			}
		}
	}
	check := func(attempt string) {
		t.Helper()
		if diff := cmp.Diff(o.changes, logged(t, client, auditTable, o.changes)); diff != "" {
			t.Errorf("%s: log (-want +got):\n%s", attempt, diff)
		}
		if len(log.appended) != changes {
			t.Errorf("%s: %d rows were appended, want one for each of %d changes", attempt, len(log.appended), changes)
		}
		if len(deadLettered) != 1 || !strings.Contains(deadLettered[0], `attribute "total"`) {
			t.Errorf("%s: dead-lettered: %q, want the change that cannot be read", attempt, deadLettered)
		}
	}
	poll("first delivery")
	check("first delivery")
	if log.refused < 5 || invocations < 6 {
		t.Errorf("%d appends were refused in %d invocations, which shows too little", log.refused, invocations)
	}
	before := invocations
	poll("redelivery") // from the stream's beginning
	check("redelivery")
	if got := invocations - before; got != (changes+1+19)/20 {
		t.Errorf("the redelivery took %d invocations, want one for each batch, since nothing is left to do", got)
	}

	// The rows came in each order's order, which is that of their sequence numbers.
	last, lengths := make(map[string]string), make(map[int]bool)
	for _, e := range log.appended {
		if id := e.ChangeID(); id <= last[e.OrderID] {
			t.Errorf("order %s: %s was appended behind %s", e.OrderID, id, last[e.OrderID])
		} else {
			last[e.OrderID] = id
		}
		if strings.Trim(e.SequenceNumber, "0123456789") != "" {
			t.Errorf("sequence number is %q, want a number", e.SequenceNumber)
		}
		lengths[len(e.SequenceNumber)] = true
	}
	t.Logf("%d changes in %d invocations, sequence numbers with so many digits: %v", changes+1, before, lengths)
}

// TestTableLog appends a row twice.
func TestTableLog(t *testing.T) {
	client := dynamotest.Client(t)
	table, _ := dynamotest.StreamTable(t, client, audit.PartitionKey, audit.SortKey)
	log := audit.TableLog{Client: client, Table: table}
	e := audit.Entry{OrderID: "order-1", EventID: "f", SequenceNumber: "100000000003459374629", Version: 1, Operation: dynamodbstream.Insert}
	changed := e
	changed.Version = 2 // to see that the first row stays
	for _, e := range []audit.Entry{e, changed} {
		if err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]string{"order-1": {line(dynamodbstream.Insert, 1, "")}}
	if diff := cmp.Diff(want, logged(t, client, table, want)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	err := audit.TableLog{Client: client, Table: "oncekit-test-no-such-table"}.Append(t.Context(), e)
	if missing := new(types.ResourceNotFoundException); !errors.As(err, &missing) || !strings.Contains(err.Error(), "no-such-table") {
		t.Errorf("error is %v, want one that names the table", err)
	}
}
