package dynamodbstream

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
)

// attributeValues lets cmp look into attribute values of aws-lambda-go.
var attributeValues = cmp.AllowUnexported(events.DynamoDBAttributeValue{})

func TestView(t *testing.T) {
	v := View{recordOf(t, documented)}
	for _, test := range []struct {
		method    string
		want, got any
	}{
		{"ID", "f07f8ca4b0b26cb9c4e5e77e69f274ee", v.ID()},
		{"Operation", Modify, v.Operation()},
		{"SequenceNumber", "1405400000000002063282832", v.SequenceNumber()},
		{"StreamARN", streamARN, v.StreamARN()},
		{"CreatedAt", time.Unix(1480642020, 0), v.CreatedAt()},
		{"ByTTL", false, v.ByTTL()},
		{"JSON", documented, v.JSON()},
		{"Raw", events.DynamoDBEventRecord{
			AWSRegion: "us-east-1",
			Change: events.DynamoDBStreamRecord{
				ApproximateCreationDateTime: events.SecondsEpochTime{Time: time.Unix(1480642020, 0)},
				Keys: map[string]events.DynamoDBAttributeValue{
					"pk": events.NewStringAttribute("order#1"), "sk": events.NewNumberAttribute("7"),
				},
				NewImage: map[string]events.DynamoDBAttributeValue{
					"pk": events.NewStringAttribute("order#1"), "sk": events.NewNumberAttribute("7"),
					"total": events.NewNumberAttribute("12.50"), "note": events.NewStringAttribute(`café "x"`),
				},
				OldImage: map[string]events.DynamoDBAttributeValue{
					"pk": events.NewStringAttribute("order#1"), "sk": events.NewNumberAttribute("7"),
					"total": events.NewNumberAttribute("10"), "blob": events.NewBinaryAttribute([]byte{0, 1, 42, 65}),
				},
				SequenceNumber: "1405400000000002063282832", SizeBytes: 54, StreamViewType: "NEW_AND_OLD_IMAGES",
			},
			EventID: "f07f8ca4b0b26cb9c4e5e77e69f274ee", EventName: "MODIFY", EventSource: "aws:dynamodb", EventVersion: "1.1",
			EventSourceArn: streamARN,
		}, v.Raw()},
	} {
		if diff := cmp.Diff(test.want, test.got, attributeValues); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.method, diff)
		}
	}
	if v.r.problem != nil {
		t.Errorf("problem is %v, want none", v.r.problem)
	}
}

// A handler's test has changes that were never delivered.
func TestViewOfALiteral(t *testing.T) {
	c := &Change[string]{}
	got := []any{c.ID(), c.Operation(), c.SequenceNumber(), c.StreamARN(), c.CreatedAt(), c.ByTTL(), c.JSON(), c.Raw()}
	want := []any{"", Operation(""), "", "", time.Time{}, false, "", events.DynamoDBEventRecord{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("methods (-want +got):\n%s", diff)
	}
}

func TestCreatedAt(t *testing.T) {
	for _, test := range []struct {
		value string
		want  time.Time
	}{
		{"1479499740", time.Unix(1479499740, 0)},
		{"1479499740.0", time.Unix(1479499740, 0)},
		{"1.5E9", time.Unix(1500000000, 0)},
		{"1.47949974E+9", time.Unix(1479499740, 0)},
		{"1479499740.123", time.UnixMilli(1479499740123)},
		{"1.479499740123456E9", time.UnixMicro(1479499740123456)},
		{"253402300799", time.Unix(253402300799, 0)},
		{"253402300800", time.Time{}}, // the year 10000
		{"1479499740123", time.Time{}},
		{"1e400", time.Time{}},
		{"0", time.Time{}},
		{"-1", time.Time{}},
		{"-6795364578.871345", time.Time{}}, // what aws-lambda-go makes of no time
		{`"1479499740"`, time.Time{}},
		{`"2016-11-18T20:09:00Z"`, time.Time{}},
		{"null", time.Time{}},
		{"true", time.Time{}},
		{"[1479499740]", time.Time{}},
		{"{}", time.Time{}},
	} {
		v := View{recordOf(t, changed(`{"ApproximateCreationDateTime":`+test.value+`}`))}
		if got := v.CreatedAt(); !got.Equal(test.want) {
			t.Errorf("CreatedAt of %s is %v, want %v", test.value, got, test.want)
		}
	}
}

func TestByTTL(t *testing.T) {
	for _, test := range []struct {
		operation, identity string
		want                bool
	}{
		{`"REMOVE"`, `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`, true},
		{`"REMOVE"`, `{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}`, true},
		{`"MODIFY"`, `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`, false},
		{`"INSERT"`, `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`, false},
		{`"remove"`, `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`, false},
		{`null`, `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`, false},
		{`"REMOVE"`, `{"type":"AssumedRole","principalId":"dynamodb.amazonaws.com"}`, false},
		{`"REMOVE"`, `{"type":"Service","principalId":"replication.dynamodb.amazonaws.com"}`, false},
		{`"REMOVE"`, `{"type":"Service"}`, false},
		{`"REMOVE"`, `{"type":["Service"],"principalId":"dynamodb.amazonaws.com"}`, false},
		{`"REMOVE"`, `{}`, false},
		{`"REMOVE"`, `null`, false},
		{`"REMOVE"`, `"dynamodb.amazonaws.com"`, false},
	} {
		v := View{recordOf(t, `{"eventName":`+test.operation+`,"userIdentity":`+test.identity+`,"dynamodb":{}}`)}
		if got := v.ByTTL(); got != test.want {
			t.Errorf("ByTTL of %s by %s is %v, want %v", test.operation, test.identity, got, test.want)
		}
	}
	if v := (View{recordOf(t, `{"eventName":"REMOVE","dynamodb":{}}`)}); v.ByTTL() {
		t.Error("ByTTL of a removal by nobody is true, want false")
	}
}

// What is not of the type that AWS documents is left out, and nothing panics: encoding/json into aws-lambda-go's types
// would at the BS.
func TestRawOfOddRecords(t *testing.T) {
	for _, test := range []struct {
		raw  string
		want events.DynamoDBEventRecord
	}{
		{`7`, events.DynamoDBEventRecord{}},
		{`{"eventID":7,"awsRegion":[],"dynamodb":"x","userIdentity":3}`, events.DynamoDBEventRecord{}},
		{`{"dynamodb":{"SizeBytes":1.5,"Keys":[],"NewImage":{"a":{"BS":[1]}},"OldImage":{"a":{"NULL":true}}}}`,
			events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
				OldImage: map[string]events.DynamoDBAttributeValue{"a": events.NewNullAttribute()},
			}}},
		{`{"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}}`, events.DynamoDBEventRecord{
			UserIdentity: &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"},
		}},
	} {
		if diff := cmp.Diff(test.want, View{recordOf(t, test.raw)}.Raw(), attributeValues); diff != "" {
			t.Errorf("Raw of %s (-want +got):\n%s", test.raw, diff)
		}
	}
}

func TestRecordProblems(t *testing.T) {
	for _, test := range []struct{ raw, want string }{
		{`null`, "dynamodbstream: record is null, want an object"},
		{`[]`, "dynamodbstream: record is an array, want an object"},
		{`{}`, `dynamodbstream: dynamodb of change "" is missing, want an object`},
		{`{"eventID":"e","dynamodb":null}`, `dynamodbstream: dynamodb of change "e" is null, want an object`},
		{`{"eventID":"e","dynamodb":"{}"}`, `dynamodbstream: dynamodb of change "e" is a string, want an object`},
		{`{"eventID":"e","dynamodb":{},"eventSource":"aws:kinesis"}`,
			`dynamodbstream: record is of event source "aws:kinesis", want "aws:dynamodb"`},
		{"{\"eventID\":\"\xff\",\"dynamodb\":{}}", "dynamodbstream: eventID is \"\uFFFD\", want text without broken characters"},
	} {
		r := recordOf(t, test.raw)
		if r.problem == nil || r.problem.Error() != test.want {
			t.Errorf("problem of %s is %v, want %s", test.raw, r.problem, test.want)
		}
		d := newDecoder[map[string]any]()
		if err := d.decode(r, &Change[map[string]any]{}); err == nil || err.Error() != test.want {
			t.Errorf("decode of %s returns %v, want %s", test.raw, err, test.want)
		}
	}
}

// Of two members with one name the last one counts, as with encoding/json, and nothing of the first is left.
func TestRecordWithTwoOfAMember(t *testing.T) {
	r := recordOf(t, `{"dynamodb":{"SequenceNumber":"1","Keys":{}},"dynamodb":{"SequenceNumber":"3","SequenceNumber":"2"}}`)
	if r.sequence != "2" || r.keys != "" {
		t.Errorf("sequence number is %q and keys are %q, want %q and none", r.sequence, r.keys, "2")
	}
	if r := recordOf(t, strings.Replace(documented, "MODIFY", `\u004dODIFY`, 1)); (View{r}).Operation() != Modify {
		t.Errorf("operation is %q, want %q", r.operation, Modify)
	}
}
