// Package deadletter sends records that are given up to an SQS queue, whatever source they came from.
//
// A record is given up when its error is batch.Permanent, or when it fails at batch.Options.MaxAttempts. The sink then
// sends a Letter, which has the record as it was delivered, its key, its source and the error. When SQS has taken the
// letter, the source is told that the record is done: a poison message no longer blocks its message group, and a poison
// record no longer blocks its shard. If it has not, the record is Failed and comes back.
//
// A queue:
//
//	sink, err := deadletter.New(awssqs.NewFromConfig(cfg), queueURL)
//	if err != nil {
//		return err
//	}
//	orders, err := sqs.NewHandler(placeOrder, func(o *sqs.Options) {
//		o.Idempotency = guard
//		o.MaxAttempts = 4 // the queue's maxReceiveCount is 6
//		o.DeadLetter = sink.DeadLetter
//	})
//
// A stream, where only the guard can count attempts:
//
//	guard, err := idempotency.New("clicks", store, func(o *idempotency.Options) { o.CountAttempts = true })
//	if err != nil {
//		return err
//	}
//	clicks, err := kinesis.NewHandler(count, func(o *kinesis.Options) {
//		o.Idempotency = guard
//		o.MaxAttempts = 4 // the mapping's BatchSize is 100, and its MaximumRetryAttempts 302
//		o.DeadLetter = sink.DeadLetter
//	})
//
// A DynamoDB stream, the same:
//
//	audit, err := dynamodbstream.NewHandler(write, func(o *dynamodbstream.Options) {
//		o.Idempotency = guard
//		o.MaxAttempts = 4
//		o.DeadLetter = sink.DeadLetter
//	})
//
// A test gives New a Client of its own, which keeps the entries of each request and answers with all of them as Successful.
//
// A source of one's own gives the sink to batch.Process in the same way, and says how its records are written by
// Options.Record, or by a method JSON() string of what is in batch.Record.Value.
//
// The function's role needs sqs:SendMessage on the queue, and kms:GenerateDataKey and kms:Decrypt on its key if the queue
// is encrypted with one of your own
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html).
//
// # Attempts
//
// Keep MaxAttempts below what the source itself gives up at, by two or more, since attempts are also lost to throttling,
// timeouts and crashes:
//
//   - SQS: below the maxReceiveCount of the queue's own redrive policy, which moves the message without the error.
//   - Streams: below the MaximumRetryAttempts of the event source mapping. When that is reached, Lambda drops what is
//     left of the batch, the good records too, and an on-failure destination gets only its position in the shard, except
//     for S3, which gets the records
//     (https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html). Each record that is given up
//     takes MaxAttempts-1 retries of its batch, and several in one order take theirs one after the other. So it must be
//     (MaxAttempts-1) * n + 2 or more, where n is how many records of one order may fail in one batch.
//
// Keep both of the source's own: they are what is left when the sink fails, and where letters larger than MaxBytes go,
// for which the record stays Failed.
//
// An SQS message's attempts are its receives. A record of a stream has no such number: without CountAttempts only a
// batch.Permanent error gives it up. CountAttempts counts how often the handler was started with the record. A crash
// counts for every record that was in flight.
//
// The bystanders of a FIFO message group gain a receive each time that the poison message before them fails, although they
// do not run. They come to maxReceiveCount together with it, and the redrive policy then moves them too. A MaxAttempts
// well below maxReceiveCount gives up the poison message alone, and its group goes on in the same batch. But the receives
// that the bystanders have gained count for them as well: at MaxAttempts one is given up when it fails for the first time.
// With CountAttempts only the starts of its own handler count.
//
// # What happens to the key
//
// The letter is sent while the record's claim is held. Then a key that is the source's own identity counts as done: the
// same record runs no more, also if it is handed to the handler again from its letter. A business key is free again, so
// that a record that is sent again, or taken from its letter, runs under it.
//
// # Duplicates
//
// A letter can be in the queue twice: when the function crashes after it was sent, when SQS takes it and the answer is
// lost, when the caller's time ends before the answer. What reads the queue has to tolerate that.
//
// # FIFO queues
//
// A queue whose URL ends in ".fifo" gets the letters of a lane (a message group, a partition key, an item) as one message
// group, in order. A message group that waits in the dead-letter queue holds up no other.
//
// Its deduplication takes the letters of one record for one, which spares most duplicates. It also holds for five minutes
// after a letter was sent if that was received and deleted meanwhile
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html).
// A reader that hands the record of a letter back to the same handler must not delete the letter before the five
// minutes are over: if the record is given up again, SQS drops the second letter. Sending the record to its source anew
// gives it a new identity, and a standard queue drops nothing.
//
//snippet:go import awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
//snippet:go var cfg aws.Config
//snippet:go var queueURL string
//snippet:go var guard *idempotency.Guard
//snippet:go var store idempotency.Store
//snippet:go var sink *deadletter.Sink
//snippet:go type Order struct{}
//snippet:go func placeOrder(context.Context, *sqs.Message[Order]) error { return nil }
//snippet:go func count(context.Context, *kinesis.Record[Order]) error { return nil }
//snippet:go func write(context.Context, *dynamodbstream.Change[Order]) error { return nil }
package deadletter
