package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/events"
)

// order is the body of a message.
type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Lines    []line `json:"lines"`
}

type line struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Price    int64  `json:"price"`
}

// sqsMessage returns message number i of a batch, some 600 bytes of JSON. Its messageId is the same for the same
// arguments, and for no others.
func sqsMessage(batch, i int) (events.SQSMessage, error) {
	body, err := json.Marshal(order{
		ID: fmt.Sprintf("order-%06d", i), Customer: fmt.Sprintf("customer-%02d", i%97), Amount: int64(i%90+10) * 100,
		Currency: "EUR", Lines: []line{{SKU: "sku-1", Quantity: 1, Price: 100}},
	})
	return events.SQSMessage{
		MessageId:     messageID(batch, i),
		ReceiptHandle: fmt.Sprintf("AQEBwJnKyrHig%08d", i),
		Body:          string(body),
		Md5OfBody:     "e4e68fb7bd0e697a0ae8f1bb342846b3",
		Attributes: map[string]string{
			"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183",
			"ApproximateFirstReceiveTimestamp": "1545082649185",
		},
		EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:orders", AWSRegion: "eu-west-1",
	}, err
}

func messageID(batch, i int) string { return fmt.Sprintf("%08x-87a3-44ab-83d2-%012d", batch, i) }

// writeEvents writes SQS events to a file, one a line: so many batches of a size, numbered from first on. It returns the
// file's size.
func writeEvents(name string, first, batches, size int) (bytes int, err error) {
	file, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	for batch := first; batch < first+batches; batch++ {
		event := events.SQSEvent{Records: make([]events.SQSMessage, size)}
		for i := range event.Records {
			if event.Records[i], err = sqsMessage(batch, i); err != nil {
				return 0, err
			}
		}
		encoded, err := json.Marshal(event)
		if err != nil {
			return 0, err
		}
		n, err := w.Write(append(encoded, '\n'))
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, w.Flush()
}
