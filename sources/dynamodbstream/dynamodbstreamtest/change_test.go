package dynamodbstreamtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/dynamodbstream/dynamodbstreamtest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// records returns the records of a table as JSON without what is not about their changes.
func records(t *testing.T, table *dynamodbstreamtest.Table) []string {
	t.Helper()
	var all []string
	for _, h := range table.Histories() {
		b, err := json.Marshal(map[string]any{
			"name": h.Record.EventName, "keys": h.Record.Change.Keys, "old": h.Record.Change.OldImage,
			"new": h.Record.Change.NewImage, "by": h.Record.UserIdentity,
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(b))
	}
	return all
}

func TestChanges(t *testing.T) {
	const (
		keys    = `{"id":{"S":"o"},"line":{"N":"1"}}`
		one     = `{"id":{"S":"o"},"line":{"N":"1"},"value":{"S":"one"}}`
		two     = `{"id":{"S":"o"},"line":{"N":"1"},"value":{"S":"two"}}`
		service = `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`
	)
	record := func(name, old, new, by string) string {
		return `{"by":` + by + `,"keys":` + keys + `,"name":"` + name + `","new":` + new + `,"old":` + old + `}`
	}
	for view, want := range map[events.DynamoDBStreamViewType][]string{
		events.DynamoDBStreamViewTypeNewAndOldImages: {
			record("INSERT", "null", one, "null"), record("MODIFY", one, two, "null"), record("REMOVE", two, "null", "null"),
			record("INSERT", "null", one, "null"), record("MODIFY", one, two, "null"), record("REMOVE", two, "null", service),
		},
		events.DynamoDBStreamViewTypeNewImage: {
			record("INSERT", "null", one, "null"), record("MODIFY", "null", two, "null"), record("REMOVE", "null", "null", "null"),
			record("INSERT", "null", one, "null"), record("MODIFY", "null", two, "null"), record("REMOVE", "null", "null", service),
		},
		events.DynamoDBStreamViewTypeOldImage: {
			record("INSERT", "null", "null", "null"), record("MODIFY", one, "null", "null"), record("REMOVE", two, "null", "null"),
			record("INSERT", "null", "null", "null"), record("MODIFY", one, "null", "null"), record("REMOVE", two, "null", service),
		},
		events.DynamoDBStreamViewTypeKeysOnly: {
			record("INSERT", "null", "null", "null"), record("MODIFY", "null", "null", "null"), record("REMOVE", "null", "null", "null"),
			record("INSERT", "null", "null", "null"), record("MODIFY", "null", "null", "null"), record("REMOVE", "null", "null", service),
		},
	} {
		t.Run(string(view), func(t *testing.T) {
			table := newTable(t, func(o *dynamodbstreamtest.Options) { o.StreamViewType = view })
			must := changed(t)
			must(table.Put(item("o", "1", "one")))
			must(table.Put(item("o", "1", "two")))
			must(table.Delete(key("o", "1")))
			must(table.Put(item("o", "1", "one")))
			must(table.Update(key("o", "1"), func(i dynamodbstreamtest.Item) { i["value"] = events.NewStringAttribute("two") }))
			must(table.Expire(key("o", "1")))
			if diff := cmp.Diff(want, records(t, table)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// What leaves an item as it was writes no record.
func TestNoChange(t *testing.T) {
	table := newTable(t)
	must := changed(t)
	must(table.Put(item("o", "1", "one")))
	for _, c := range []dynamodbstreamtest.Change{
		must(table.Put(item("o", "1", "one"))),
		must(table.Update(key("o", "1"), func(dynamodbstreamtest.Item) {})),
		must(table.Delete(key("o", "2"))),
	} {
		if c != (dynamodbstreamtest.Change{}) {
			t.Errorf("change is %+v, want none", c)
		}
	}
	if got := table.Stats().Put; got != 1 {
		t.Errorf("there are %d records, want 1", got)
	}
}

func TestChangesRefuse(t *testing.T) {
	table := newTable(t)
	must := changed(t)
	must(table.Put(item("o", "1", "one")))
	with := func(name string, value events.DynamoDBAttributeValue) dynamodbstreamtest.Item {
		i := item("o", "1", "two")
		i[name] = value
		return i
	}
	put := func(i dynamodbstreamtest.Item) error { _, err := table.Put(i); return err }
	_, noItem := table.Update(key("x", "1"), func(dynamodbstreamtest.Item) { t.Error("called without an item") })
	_, notExpired := table.Expire(key("x", "1"))
	_, otherKey := table.Update(key("o", "1"), func(i dynamodbstreamtest.Item) { i["line"] = events.NewNumberAttribute("2") })
	_, lostKey := table.Update(key("o", "1"), func(i dynamodbstreamtest.Item) { delete(i, "line") })
	_, noKey := table.Delete(dynamodbstreamtest.Item{"id": events.NewStringAttribute("o")})
	nothing := events.DynamoDBAttributeValue{}
	for _, test := range []struct {
		err  error
		want string
	}{
		{put(nil), `item must have the key attribute "id"`},
		{noKey, `dynamodbstreamtest: item must have the key attribute "line"`},
		{put(with("line", events.NewStringAttribute(""))), `key attribute "line" must not be empty`},
		{put(with("line", events.NewNumberAttribute(""))), `key attribute "line": number is "", but must be`},
		{put(with("id", events.NewStringAttribute(strings.Repeat("x", 2049)))), `key attribute "id" has 2049 bytes, but must have at most 2048`},
		{put(with("line", events.NewBinaryAttribute(make([]byte, 1025)))), `key attribute "line" has 1025 bytes, but must have at most 1024`},
		{put(with("id", events.NewNumberAttribute("1"))), `key attribute "id" is of type number, but must be of type string`},
		{put(with("line", events.NewStringAttribute("1"))), `key attribute "line" is of type string, but must be of type number`},
		{put(with("value", events.NewNumberAttribute("one"))), `attribute "value": number is "one"`},
		{put(with("value", events.NewNumberSetAttribute([]string{"1", "one"}))), `attribute "value": element 1: number is "one"`},
		{put(with("value", events.NewNumberSetAttribute([]string{"10", "1e1"}))), `element 1 of the set is there before`},
		{put(with("value", events.NewStringSetAttribute([]string{"a", "b", "a"}))), `element 2 of the set is there before`},
		{put(with("value", events.NewBinarySetAttribute([][]byte{{1}, {1}}))), `element 1 of the set is there before`},
		{put(with("value", events.NewStringSetAttribute(nil))), `set has no elements`},
		{put(with("value", events.NewNumberSetAttribute([]string{}))), `set has no elements`},
		{put(with("value", events.NewBinarySetAttribute(nil))), `set has no elements`},
		{put(with("value", events.NewStringAttribute("a\xff"))), `attribute "value": text is "a\xff", but must be UTF-8`},
		{put(with("value", events.NewStringSetAttribute([]string{"\xff"}))), `attribute "value": element 0: text is "\xff"`},
		{put(with("line", events.NewStringAttribute("a\xff"))), `key attribute "line": text is "a\xff"`},
		{put(with("", events.NewNullAttribute())), `an attribute has no name`},
		{put(with("a\xff", events.NewNullAttribute())), `attribute name is "a\xff", but must be UTF-8`},
		{put(with("value", events.NewMapAttribute(dynamodbstreamtest.Item{"": events.NewNullAttribute()}))), `attribute "value": an attribute has no name`},
		{put(with("line", events.NewBinaryAttribute(nil))), `key attribute "line" must not be empty`},
		{put(with("line", events.NewBooleanAttribute(true))), `key attribute "line" must be a string, a number or binary`},
		{put(with("line", nothing)), `key attribute "line": it has no value`},
		{put(with("value", nothing)), `attribute "value": it has no value`},
		{put(with("value", events.NewListAttribute([]events.DynamoDBAttributeValue{nothing}))), `attribute "value": element 0: it has no value`},
		{put(with("value", events.NewMapAttribute(dynamodbstreamtest.Item{"a": nothing}))), `attribute "value": attribute "a": it has no value`},
		{put(with("value", events.NewStringAttribute(strings.Repeat("x", 400<<10)))), "but must have at most 409600"},
		{noItem, dynamodbstreamtest.ErrNoItem.Error()},
		{notExpired, dynamodbstreamtest.ErrNoItem.Error()},
		{otherKey, "after the update, but must stay"},
		{lostKey, `must have the key attribute "line"`},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("error is %v, want it to contain %q", test.err, test.want)
		}
	}
	if !errors.Is(noItem, dynamodbstreamtest.ErrNoItem) {
		t.Errorf("error is %v, want ErrNoItem", noItem)
	}
	if got := table.Stats().Put; got != 1 {
		t.Errorf("there are %d records, want that of the good item", got)
	}
	must(table.Put(with("value", events.NewStringAttribute(strings.Repeat("x", 399<<10)))))
	must(table.Put(with("id", events.NewStringAttribute(strings.Repeat("x", 2048)))))
}

func TestNumbers(t *testing.T) {
	table := newTable(t)
	put := func(numbers ...string) error {
		i := key("o", "1")
		i["set"] = events.NewNumberSetAttribute(numbers)
		_, err := table.Put(i)
		return err
	}
	nines := strings.Repeat("9", 38)
	for _, number := range []string{
		"0", "-0.00", "1", "+1", "-1.50", ".5", "5.", "1E5", "1e-5", "007", nines, "-" + nines, nines + strings.Repeat("0", 87),
		"1." + nines[1:], "0.00" + nines, nines + "E88", "1E-130", "1E125", "0.01E127", "100E-132", "0E999",
	} {
		if err := put(number); err != nil {
			t.Errorf("number %q is refused: %v", number, err)
		}
	}
	for _, number := range []string{
		"", " ", " 1", "1 ", "+", "-", ".", "e5", "1e", "1e+", "1e1.5", "--1", "+-1", "1.2.3", "0x1", "1_000", "1,5", "NaN", "Inf", "\u0661",
		nines + "9", "1." + nines, "1E126", "10E125", "1E-131", "0.1E-130", "1E99999999999999999999", "1E-9223372036854775808",
		"1.5E-9223372036854775808", nines + "E89",
	} {
		if err := put(number); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("number is %q, but must be", number)) {
			t.Errorf("error for number %q is %v, want one that quotes it", number, err)
		}
	}
	for _, pair := range [][2]string{
		{"1", "1.0"}, {"100", "1e2"}, {"-1.5", "-15E-1"}, {"0", "-0"}, {"0", "0E5"}, {"+7", "07"}, {"0.001", "1E-3"},
	} {
		if put(pair[0], pair[1]) == nil {
			t.Errorf("%q and %q are in one set, want an error since they are equal", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"1", "-1"}, {"1", "10"}, {"0.1", "0.01"}, {"12", "1.2"}, {"101", "11"}} {
		if err := put(pair[0], pair[1]); err != nil {
			t.Errorf("%q and %q are not in one set: %v", pair[0], pair[1], err)
		}
	}
}

// Nothing that the caller has, or gets, is shared with the table.
func TestItemsAreCopied(t *testing.T) {
	table := newTable(t)
	must := changed(t)
	list := []events.DynamoDBAttributeValue{events.NewStringAttribute("one")}
	i := item("o", "1", "")
	i["value"] = events.NewListAttribute(list)
	must(table.Put(i))
	list[0] = events.NewStringAttribute("other")
	shown := table.Histories()[0].Record.Change
	shown.NewImage["value"].List()[0] = events.NewStringAttribute("other")
	delete(shown.NewImage, "value")
	delete(shown.Keys, "id")
	must(table.Update(key("o", "1"), func(i dynamodbstreamtest.Item) {
		i["value"].List()[0] = events.NewStringAttribute("two")
	}))
	must(table.Delete(key("o", "1")))
	all := records(t, table)
	for n, want := range map[int]string{1: `"old":{"id":{"S":"o"},"line":{"N":"1"},"value":{"L":[{"S":"one"}]}}`, 2: `"L":[{"S":"two"}]`} {
		if !strings.Contains(all[n], want) {
			t.Errorf("record %d is %s, want it to contain %s", n, all[n], want)
		}
	}
}

// Every kind of attribute value arrives as it was.
func TestAttributeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t)
		must := changed(t)
		i := key("o", "1")
		for name, value := range map[string]events.DynamoDBAttributeValue{
			"b": events.NewBinaryAttribute([]byte{0, 255}), "bool": events.NewBooleanAttribute(true),
			"bs": events.NewBinarySetAttribute([][]byte{{1}, {2}}), "n": events.NewNumberAttribute("1.50"),
			"ns": events.NewNumberSetAttribute([]string{"1", "2"}), "null": events.NewNullAttribute(),
			"ss": events.NewStringSetAttribute([]string{"a", "ä"}),
			"l":  events.NewListAttribute([]events.DynamoDBAttributeValue{events.NewNullAttribute()}),
			"m":  events.NewMapAttribute(dynamodbstreamtest.Item{"x": events.NewStringAttribute("y")}),
		} {
			i[name] = value
		}
		must(table.Put(i))
		var got string
		drain(t, table, lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
			got = string(payload)
			return nil, nil
		}))
		want := `"NewImage":{"b":{"B":"AP8="},"bool":{"BOOL":true},"bs":{"BS":["AQ==","Ag=="]},"id":{"S":"o"},` +
			`"l":{"L":[{"NULL":true}]},"line":{"N":"1"},"m":{"M":{"x":{"S":"y"}}},"n":{"N":"1.50"},"ns":{"NS":["1","2"]},` +
			`"null":{"NULL":true},"ss":{"SS":["a","ä"]}},`
		if !strings.Contains(got, want) {
			t.Errorf("payload is %s, want it to contain %s", got, want)
		}
		// The keys twice, 9 bytes each, and 3 (b), 5 (bool), 4 (bs), 6 (l), 7 (m), 4 (n), 6 (ns), 5 (null), 5 (ss).
		if got := table.Histories()[0].Record.Change.SizeBytes; got != 63 {
			t.Errorf("SizeBytes is %d, want 63", got)
		}
	})
}

func TestPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t)
		time.Sleep(1999 * time.Millisecond)
		c := changed(t)(table.Put(key("o", "1")))
		want := `{"Records":[{"awsRegion":"us-east-1","dynamodb":{"ApproximateCreationDateTime":946684801,` +
			`"Keys":{"id":{"S":"o"},"line":{"N":"1"}},"NewImage":{"id":{"S":"o"},"line":{"N":"1"}},` +
			`"SequenceNumber":"` + c.SequenceNumber + `","SizeBytes":18,"StreamViewType":"NEW_AND_OLD_IMAGES"},` +
			`"eventID":"` + c.EventID + `","eventName":"INSERT","eventSource":"aws:dynamodb","eventVersion":"1.1",` +
			`"eventSourceARN":"arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-11-01T00:00:00.000"}]}`
		var got string
		drain(t, table, lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
			got = string(payload)
			return nil, nil
		}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("payload (-want +got):\n%s", diff)
		}
		if again := string(dynamodbstreamtest.Payload(events.DynamoDBEvent{
			Records: []events.DynamoDBEventRecord{table.Histories()[0].Record},
		})); again != want {
			t.Errorf("Payload is %s, want %s", again, want)
		}
	})
}

// Sequence numbers grow in value and in length, and comparing them as text goes wrong.
func TestSequenceNumbers(t *testing.T) {
	table := newTable(t)
	lengths := map[int]bool{}
	eventIDs := map[string]bool{}
	last, textGoesWrong := "", false
	for i := range 200 {
		c := changed(t)(table.Put(item("o", "1", fmt.Sprint(i))))
		number := c.SequenceNumber
		if len(number) < len(last) || len(number) == len(last) && number <= last {
			t.Fatalf("sequence number %s follows %s, want a larger one", number, last)
		}
		textGoesWrong = textGoesWrong || number < last
		last = number
		lengths[len(number)] = true
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(c.EventID) || eventIDs[c.EventID] {
			t.Fatalf("event ID is %q, want 32 hexadecimal digits that were not there before", c.EventID)
		}
		eventIDs[c.EventID] = true
	}
	if !lengths[3] || !lengths[25] || lengths[26] || lengths[2] || !textGoesWrong {
		t.Errorf("sequence numbers have the lengths %v, want some from 3 to 25 and an order that is not that of text", lengths)
	}
}

func TestNewEventPanics(t *testing.T) {
	for name, fn := range map[string]func(){
		"name": func() { dynamodbstreamtest.NewEvent("a/b", dynamodbstreamtest.Key{Partition: "id"}) },
		"change": func() {
			dynamodbstreamtest.NewEvent("orders", dynamodbstreamtest.Key{Partition: "id"}, func(*dynamodbstreamtest.Table) error { return errNo })
		},
		"value": func() {
			dynamodbstreamtest.Payload(events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{
				Change: events.DynamoDBStreamRecord{Keys: dynamodbstreamtest.Item{"id": {}}},
			}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("there was no panic")
				}
			}()
			fn()
		})
	}
	if got := string(dynamodbstreamtest.Payload(dynamodbstreamtest.NewEvent("orders", dynamodbstreamtest.Key{Partition: "id"}))); got != `{"Records":[]}` {
		t.Errorf("event without records is %s", got)
	}
}
