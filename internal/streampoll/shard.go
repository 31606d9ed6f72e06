// Package streampoll hands the records that are in a shard of a Kinesis or DynamoDB stream to a Lambda function's
// handler, as Lambda's event source mapping does. The shard is a real one: its checkpoints are iterators of the
// server, made from the sequence numbers that the handler answers with.
//
// It is the plain case, one batch of a shard at a time and no limit to retries. kinesistest and dynamodbstreamtest have
// the rest.
package streampoll

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Handler is the part of lambda.Handler of aws-lambda-go.
type Handler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Record is one record of a shard.
type Record struct {
	SequenceNumber string
	// JSON is the record as it is in the Records of a Lambda event.
	JSON json.RawMessage
}

// Shard is one shard of a stream.
type Shard struct {
	ID string

	// Read returns up to limit records, the oldest first: those after a sequence number, or from the stream's oldest
	// one where that is empty. It returns none only at the end.
	Read func(ctx context.Context, after string, limit int) ([]Record, error)
}

const (
	// invocationTimeout is how long an invocation may take. It is the deadline of the handler's context.
	invocationTimeout = time.Minute

	// maxAttempts is how many invocations may do nothing, one after the other.
	maxAttempts = 10
)

// Poll invokes h with the shard's records, in batches of up to batchSize, until all that it has are done, and returns
// how often it did. The records before the lowest sequence number that an answer reports are done, and the next batch
// begins with that one; an error does none.
//
// The error says that the shard cannot be read, that 10 invocations in a row did no record, or that the answer is none
// whose effect is documented.
// See https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html
func (s Shard) Poll(ctx context.Context, h Handler, batchSize int) (invocations int, err error) {
	var checkpoint string
	for attempt := 1; ; attempt++ {
		batch, err := s.Read(ctx, checkpoint, batchSize)
		if err != nil {
			return invocations, fmt.Errorf("streampoll: read %s after %q: %w", s.ID, checkpoint, err)
		}
		switch {
		case len(batch) == 0:
			return invocations, nil
		case batch[0].SequenceNumber == checkpoint:
			return invocations, fmt.Errorf("streampoll: %s begins after %s with that record", s.ID, checkpoint)
		}
		invocations++
		answer, failure := invoke(ctx, h, batch)
		done := 0
		if failure == nil {
			if done, err = countDone(answer, batch); err != nil {
				return invocations, fmt.Errorf("streampoll: answer %q for %s: %w", answer, s.ID, err)
			}
		}
		switch {
		case done > 0:
			checkpoint = batch[done-1].SequenceNumber
			attempt = 0
		case ctx.Err() != nil:
			return invocations, context.Cause(ctx)
		case attempt == maxAttempts:
			if failure == nil {
				failure = fmt.Errorf("the answer was %s", answer)
			}
			return invocations, fmt.Errorf("streampoll: %s is stuck at %s after %d attempts: %w",
				s.ID, batch[0].SequenceNumber, maxAttempts, failure)
		}
	}
}

func invoke(ctx context.Context, h Handler, batch []Record) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, invocationTimeout)
	defer cancel()
	payload := Event(batch)
	defer clear(payload) // aws-lambda-go uses its buffer again
	return h.Invoke(ctx, payload)
}

// countDone returns how many records of the batch are done, which is all before the first that the answer reports. An
// item identifier that is empty or missing reports the whole batch.
func countDone(answer []byte, batch []Record) (int, error) {
	// Maps, since the fields of a struct would take keys of another case too, which Lambda does not.
	var parsed map[string]json.RawMessage
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return 0, err
	}
	list, ok := parsed["batchItemFailures"]
	if !ok || string(list) == "null" {
		return 0, fmt.Errorf("there is no batchItemFailures in it, or null, which Lambda takes for success")
	}
	var failures []map[string]string
	if err := json.Unmarshal(list, &failures); err != nil {
		return 0, err
	}
	position := map[string]int{"": 0}
	for i, r := range batch {
		position[r.SequenceNumber] = i
	}
	done := len(batch)
	for _, failure := range failures {
		id := failure["itemIdentifier"]
		at, ok := position[id]
		if !ok {
			return 0, fmt.Errorf("%q is no sequence number of the batch", id)
		}
		done = min(done, at)
	}
	return done, nil
}

// Event returns the Lambda event of these records.
func Event(records []Record) []byte {
	all := make([][]byte, len(records))
	for i, r := range records {
		all[i] = r.JSON
	}
	event := append([]byte(`{"Records":[`), bytes.Join(all, []byte(","))...)
	return append(event, `]}`...)
}
