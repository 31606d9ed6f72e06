package dynamodbstream

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

type benchOrder struct {
	Customer string      `dynamodbav:"pk"`
	ID       string      `dynamodbav:"sk"`
	Amount   int64       `dynamodbav:"amount"`
	Currency string      `dynamodbav:"currency"`
	Status   string      `dynamodbav:"status"`
	Paid     bool        `dynamodbav:"paid"`
	Lines    []benchLine `dynamodbav:"lines"`
}

type benchLine struct {
	SKU      string `dynamodbav:"sku"`
	Quantity int    `dynamodbav:"quantity"`
	Price    int64  `dynamodbav:"price"`
}

// benchEvent is an event of n changes of orders, with both images and everything that AWS sends.
func benchEvent(b *testing.B, n int) []byte {
	b.Helper()
	text := events.NewStringAttribute
	number := events.NewNumberAttribute
	line := func(sku, quantity, price string) events.DynamoDBAttributeValue {
		return events.NewMapAttribute(map[string]events.DynamoDBAttributeValue{
			"sku": text(sku), "quantity": number(quantity), "price": number(price),
		})
	}
	var event events.DynamoDBEvent
	for i := range n {
		keys := map[string]events.DynamoDBAttributeValue{
			"pk": text(fmt.Sprintf("customer#%06d", i%97)), "sk": text(fmt.Sprintf("order#%06d", i)),
		}
		image := func(status string) map[string]events.DynamoDBAttributeValue {
			return map[string]events.DynamoDBAttributeValue{
				"pk": keys["pk"], "sk": keys["sk"], "amount": number(fmt.Sprint(i * 100)), "currency": text("EUR"), "status": text(status),
				"paid":  events.NewBooleanAttribute(true),
				"lines": events.NewListAttribute([]events.DynamoDBAttributeValue{line("sku-1", "1", "100"), line("sku-2", "2", "250")}),
			}
		}
		event.Records = append(event.Records, events.DynamoDBEventRecord{
			EventID: fmt.Sprintf("f07f8ca4b0b26cb9c4e5e77e%08d", i), EventName: "MODIFY", EventVersion: "1.1", EventSource: eventSource,
			AWSRegion: "us-east-1", EventSourceArn: streamARN,
			Change: events.DynamoDBStreamRecord{
				Keys: keys, OldImage: image("placed"), NewImage: image("shipped"), SizeBytes: 600,
				SequenceNumber: fmt.Sprintf("14054000000000020632%08d", i), StreamViewType: "NEW_AND_OLD_IMAGES",
			},
		})
	}
	payload, err := json.Marshal(event)
	if err != nil {
		b.Fatal(err)
	}
	return payload
}

// BenchmarkDecode takes an event from bytes to decoded changes with their lanes, beside what people write by hand:
// encoding/json into aws-lambda-go's event, a conversion to the SDK's attribute values, and the SDK's UnmarshalMap. The
// SDK's part is what decoding would cost if the rest cost nothing.
func BenchmarkDecode(b *testing.B) {
	const n = 1000
	payload := benchEvent(b, n)
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
	}
	b.Run("loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var event events.DynamoDBEvent
			if err := json.Unmarshal(payload, &event); err != nil {
				b.Fatal(err)
			}
			for i := range event.Records {
				change := &event.Records[i].Change
				for _, image := range []map[string]events.DynamoDBAttributeValue{change.Keys, change.OldImage, change.NewImage} {
					var o benchOrder
					if err := attributevalue.UnmarshalMap(byHand(image), &o); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		report(b)
	})
	b.Run("oncekit", func(b *testing.B) { decodeAll[benchOrder](b, payload, n); report(b) })
	b.Run("attributes/loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var event events.DynamoDBEvent
			if err := json.Unmarshal(payload, &event); err != nil {
				b.Fatal(err)
			}
			for i := range event.Records {
				change := &event.Records[i].Change
				_, _, _ = byHand(change.Keys), byHand(change.OldImage), byHand(change.NewImage)
			}
		}
		report(b)
	})
	b.Run("attributes/oncekit", func(b *testing.B) { decodeAll[map[string]types.AttributeValue](b, payload, n); report(b) })
	b.Run("sdk", func(b *testing.B) {
		var s splitRecords
		if err := envelope.Split(payload, &s); err != nil {
			b.Fatal(err)
		}
		var items []map[string]types.AttributeValue
		for _, r := range s.records {
			for _, image := range []string{r.keys, r.oldImage, r.newImage} {
				item, err := parseItem(image)
				if err != nil {
					b.Fatal(err)
				}
				items = append(items, item)
			}
		}
		b.ReportAllocs()
		for b.Loop() {
			for _, item := range items {
				var o benchOrder
				if err := attributevalue.UnmarshalMap(item, &o); err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
	b.Run("split", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var s splitRecords
			if err := envelope.Split(payload, &s); err != nil || len(s.records) != n {
				b.Fatal(err, len(s.records))
			}
		}
		report(b)
	})
}

func decodeAll[T any](b *testing.B, payload []byte, n int) {
	b.ReportAllocs()
	d := newDecoder[T]()
	for b.Loop() {
		var s splitRecords
		if err := envelope.Split(payload, &s); err != nil || len(s.records) != n {
			b.Fatal(err, len(s.records))
		}
		for i := range s.records {
			var c Change[T]
			if _, err := lane(s.records[i].keys); err != nil {
				b.Fatal(err)
			}
			if err := d.decode(&s.records[i], &c); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkLane(b *testing.B) {
	for _, keys := range []string{
		`{"pk":{"S":"customer#0123456789"}}`,
		`{"sk":{"S":"2026-12-01T00:00:00Z"},"pk":{"S":"customer#0123456789"}}`,
		`{"pk":{"S":"customer#0123456789"},"sk":{"N":"1480642020"}}`,
	} {
		b.Run(keys, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := lane(keys); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
