package kinesistest_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// A handler that reports the first record that failed has that one delivered again, and everything behind it.
func Example() {
	s, err := kinesistest.NewStream("clicks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for _, page := range []string{"home", "shop", "cart"} {
		if _, _, err := s.Put(kinesistest.Record{PartitionKey: "visitor-7", Data: []byte(page)}); err != nil {
			fmt.Println(err)
			return
		}
	}

	shopIsDown := true
	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.KinesisEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var answer events.KinesisEventResponse
		for _, r := range event.Records {
			if page := string(r.Kinesis.Data); page == "shop" && shopIsDown {
				shopIsDown = false
				answer.BatchItemFailures = []events.KinesisBatchItemFailure{{ItemIdentifier: r.Kinesis.SequenceNumber}}
				break // what is behind it comes again anyway
			}
			fmt.Printf("%s clicked %s\n", r.Kinesis.PartitionKey, r.Kinesis.Data)
		}
		return json.Marshal(answer)
	})

	if err := s.Drain(context.Background(), handler); err != nil {
		fmt.Println(err)
	}
	fmt.Println(s.Stats())
	// Output:
	// visitor-7 clicked home
	// visitor-7 clicked shop
	// visitor-7 clicked cart
	// 3 put, 5 deliveries, 2 invocations, 3 done
}

// A record that always fails is given up after its retries, alone thanks to BisectOnError, and the shard moves on.
func ExampleStream_Discarded() {
	s, err := kinesistest.NewStream("clicks", func(o *kinesistest.Options) {
		o.BisectOnError, o.MaximumRetryAttempts = true, 2
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for _, page := range []string{"home", "poison", "cart"} {
		if _, _, err := s.Put(kinesistest.Record{PartitionKey: "visitor-7", Data: []byte(page)}); err != nil {
			fmt.Println(err)
			return
		}
	}
	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.KinesisEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		for _, r := range event.Records {
			if string(r.Kinesis.Data) == "poison" {
				return nil, fmt.Errorf("%s is poison", r.Kinesis.SequenceNumber)
			}
		}
		return nil, nil
	})
	if err := s.Drain(context.Background(), handler); err != nil {
		fmt.Println(err)
	}
	for _, d := range s.Discarded() {
		fmt.Println(d.Shard, d.Count, "record", d.Reason, "after", d.Attempts, "deliveries")
	}
	fmt.Println(s.Stats())
	// Output:
	// shardId-000000000000 1 record RetryAttemptsExhausted after 5 deliveries
	// 3 put, 10 deliveries, 7 invocations, 2 done, 1 discarded, 5 errors
}

// What a handler answers to one event needs no stream.
func ExampleNewEvent() {
	event := kinesistest.NewEvent("clicks",
		kinesistest.Record{PartitionKey: "visitor-7", Data: []byte(`{"page":"home"}`)},
		kinesistest.Record{PartitionKey: "visitor-8", Data: []byte(`{"page":`)},
	)
	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.KinesisEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		for _, r := range event.Records {
			fmt.Println(r.Kinesis.PartitionKey, json.Valid(r.Kinesis.Data))
		}
		return []byte(`{"batchItemFailures":[]}`), nil
	})
	answer, err := handler.Invoke(context.Background(), kinesistest.Payload(event))
	fmt.Printf("%s %v\n", answer, err)
	// Output:
	// visitor-7 true
	// visitor-8 false
	// {"batchItemFailures":[]} <nil>
}
