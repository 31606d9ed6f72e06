package dynamotest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/internal/streampoll"
)

func shardsOf(t *testing.T, streamARN string) []streampoll.Shard {
	t.Helper()
	shards, err := Shards(t.Context(), StreamsClient(t), streamARN)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// audit is a handler that notes the changes, and fails every change whose count can be divided by seven once.
type audit struct {
	failed  map[string]bool
	changes []string
}

func (a *audit) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	var event events.DynamoDBEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	failures := []events.DynamoDBBatchItemFailure{}
	for _, r := range event.Records {
		number := r.Change.SequenceNumber
		var count string
		if r.Change.NewImage != nil {
			count = r.Change.NewImage["count"].Number()
		}
		if n, err := strconv.Atoi(count); err == nil && n%7 == 0 && !a.failed[number] {
			a.failed[number] = true
			failures = append(failures, events.DynamoDBBatchItemFailure{ItemIdentifier: number})
			break
		}
		a.changes = append(a.changes, fmt.Sprintf("%s %s/%s %s", r.EventName, r.Change.Keys["id"].String(), r.Change.Keys["at"].String(), count))
	}
	return json.Marshal(events.DynamoDBEventResponse{BatchItemFailures: failures})
}

// TestPollReadsAllInOrder changes three items and reads the stream with failures in it: every change comes to be done
// once and in order, also where sequence numbers get longer.
func TestPollReadsAllInOrder(t *testing.T) {
	client := Client(t)
	table, stream := StreamTable(t, client, "id", "at")
	key := func(i int) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: fmt.Sprint("item-", i%3)}, "at": &types.AttributeValueMemberS{Value: "now"},
		}
	}
	var want []string
	for i := range 120 {
		item := key(i)
		item["count"] = &types.AttributeValueMemberN{Value: strconv.Itoa(i)}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item}); err != nil {
			t.Fatal(err)
		}
		operation := "MODIFY"
		if i < 3 {
			operation = "INSERT"
		}
		want = append(want, fmt.Sprintf("%s item-%d/now %d", operation, i%3, i))
	}
	for i := range 3 {
		if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: key(i)}); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("REMOVE item-%d/now ", i))
	}
	a := &audit{failed: map[string]bool{}}
	invocations := 0
	for _, shard := range shardsOf(t, stream) {
		n, err := shard.Poll(t.Context(), a, 50)
		if err != nil {
			t.Fatal(err)
		}
		invocations += n
	}
	if diff := cmp.Diff(want, a.changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	// 0, 7, ... 119 end an invocation each, and one more does the rest.
	if failures := len(a.failed); failures != 18 || invocations != 19 {
		t.Errorf("%d failures and %d invocations; want 18 and 19", failures, invocations)
	}
}

// TestEvent writes an item with every type of attribute, replaces and deletes it, and checks the events member by
// member.
func TestEvent(t *testing.T) {
	client := Client(t)
	table, stream := StreamTable(t, client, "id", "")
	const one = `{"id":{"S":"a<&>"},"n":{"N":"12345678901234567890.5"},"b":{"B":"AAH/"},"yes":{"BOOL":true},"no":{"BOOL":false},
		"null":{"NULL":true},"ss":{"SS":["x","y"]},"ns":{"NS":["1","2"]},"bs":{"BS":["AA==","AQ=="]},"empty":{"S":""},
		"m":{"M":{"inner":{"L":[{"S":"z"},{"M":{}}]}}},"l":{"L":[]}}`
	item := map[string]types.AttributeValue{
		"id":    &types.AttributeValueMemberS{Value: "a<&>"},
		"n":     &types.AttributeValueMemberN{Value: "12345678901234567890.5"},
		"b":     &types.AttributeValueMemberB{Value: []byte{0, 1, 255}},
		"yes":   &types.AttributeValueMemberBOOL{Value: true},
		"no":    &types.AttributeValueMemberBOOL{Value: false},
		"null":  &types.AttributeValueMemberNULL{Value: true},
		"ss":    &types.AttributeValueMemberSS{Value: []string{"x", "y"}},
		"ns":    &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
		"bs":    &types.AttributeValueMemberBS{Value: [][]byte{{0}, {1}}},
		"empty": &types.AttributeValueMemberS{Value: ""},
		"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"inner": &types.AttributeValueMemberL{Value: []types.AttributeValue{
				&types.AttributeValueMemberS{Value: "z"}, &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}},
			}},
		}},
		"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
	}
	key := map[string]types.AttributeValue{"id": item["id"]}
	before := time.Now().Add(-2 * time.Second)
	for _, i := range []map[string]types.AttributeValue{item, key} {
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: i}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: key}); err != nil {
		t.Fatal(err)
	}
	var records []streampoll.Record
	for _, shard := range shardsOf(t, stream) {
		more, err := shard.Read(t.Context(), "", 100)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, more...)
	}
	var event struct{ Records []map[string]any }
	if err := json.Unmarshal(streampoll.Event(records), &event); err != nil {
		t.Fatal(err)
	}
	const keys = `{"id":{"S":"a<&>"}}`
	want := []struct{ operation, images string }{
		{"INSERT", `{"Keys":` + keys + `,"NewImage":` + one + `}`},
		{"MODIFY", `{"Keys":` + keys + `,"NewImage":` + keys + `,"OldImage":` + one + `}`},
		{"REMOVE", `{"Keys":` + keys + `,"OldImage":` + keys + `}`},
	}
	if len(event.Records) != len(want) {
		t.Fatalf("read %d records, want %d", len(event.Records), len(want))
	}
	for i, got := range event.Records {
		change, _ := got["dynamodb"].(map[string]any)
		created, _ := change["ApproximateCreationDateTime"].(float64)
		if at := time.UnixMilli(int64(created * 1000)); at.Before(before) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("record %d was created at %v, want about now", i, at)
		}
		if size, _ := change["SizeBytes"].(float64); size <= 0 {
			t.Errorf("record %d has SizeBytes %v, want a positive number", i, change["SizeBytes"])
		}
		// What the server chooses is taken over.
		region, _ := got["awsRegion"].(string)
		id, _ := got["eventID"].(string)
		if region == "" || id == "" || records[i].SequenceNumber == "" {
			t.Errorf("record %d has the Region %q, the id %q and the sequence number %q; want all three", i, region, id, records[i].SequenceNumber)
		}
		var wantChange map[string]any
		if err := json.Unmarshal([]byte(want[i].images), &wantChange); err != nil {
			t.Fatal(err)
		}
		wantChange["ApproximateCreationDateTime"] = created
		wantChange["SizeBytes"] = change["SizeBytes"]
		wantChange["SequenceNumber"] = records[i].SequenceNumber
		wantChange["StreamViewType"] = "NEW_AND_OLD_IMAGES"
		if diff := cmp.Diff(map[string]any{
			"eventID": id, "eventName": want[i].operation, "eventVersion": "1.1", "eventSource": "aws:dynamodb",
			"awsRegion": region, "eventSourceARN": stream, "dynamodb": wantChange,
		}, got, sets); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", i, diff)
		}
	}
}

// sets compares lists of strings, which only sets have in these events, whatever their order.
var sets = cmp.FilterValues(func(x, y []any) bool { return areStrings(x) && areStrings(y) },
	cmp.Comparer(func(x, y []any) bool {
		count := map[any]int{}
		for _, s := range x {
			count[s]++
		}
		for _, s := range y {
			count[s]--
		}
		for _, n := range count {
			if n != 0 {
				return false
			}
		}
		return true
	}))

func areStrings(list []any) bool {
	for _, element := range list {
		if _, ok := element.(string); !ok {
			return false
		}
	}
	return true
}

// TestStreamRecord covers what the server that `make tools` installs never says.
func TestStreamRecord(t *testing.T) {
	record := streamtypes.Record{
		EventID: aws.String("e"), EventName: streamtypes.OperationTypeRemove, EventVersion: aws.String("1.1"),
		EventSource: aws.String("aws:dynamodb"), AwsRegion: aws.String("us-east-1"),
		Dynamodb: &streamtypes.StreamRecord{
			ApproximateCreationDateTime: aws.Time(time.UnixMilli(1480642020_250)),
			Keys:                        map[string]streamtypes.AttributeValue{"id": &streamtypes.AttributeValueMemberS{Value: "a"}},
			SequenceNumber:              aws.String("1405400000000002063282832"), SizeBytes: aws.Int64(54),
			StreamViewType: streamtypes.StreamViewTypeNewAndOldImages,
		},
		UserIdentity: &streamtypes.Identity{PrincipalId: aws.String("dynamodb.amazonaws.com"), Type: aws.String("Service")},
	}
	got, err := streamRecord("arn", record)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"eventID":"e","eventName":"REMOVE","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",` +
		`"dynamodb":{"ApproximateCreationDateTime":1480642020.25,"Keys":{"id":{"S":"a"}},"SequenceNumber":"1405400000000002063282832",` +
		`"SizeBytes":54,"StreamViewType":"NEW_AND_OLD_IMAGES"},` +
		`"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"eventSourceARN":"arn"}`
	if diff := cmp.Diff(want, string(got.JSON)); diff != "" {
		t.Errorf("TTL deletion (-want +got):\n%s", diff)
	}

	record.Dynamodb.Keys["id"] = &streamtypes.UnknownUnionMember{Tag: "Z"}
	if _, err := streamRecord("arn", record); err == nil || !strings.Contains(err.Error(), `attribute "id": value is a *types.UnknownUnionMember`) {
		t.Errorf("unknown type: error %v; want one that names attribute and type", err)
	}
	record.Dynamodb = nil
	if _, err := streamRecord("arn", record); err == nil || !strings.Contains(err.Error(), "record e has no dynamodb") {
		t.Errorf("record without change: error %v; want one that says so", err)
	}
}
