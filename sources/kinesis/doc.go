// Package kinesis handles batches of a Kinesis stream's shards in a Lambda function.
//
//	func main() {
//		handler, err := kinesis.NewHandler(count, func(o *kinesis.Options) { o.Idempotency = guard })
//		if err != nil {
//			log.Fatal(err)
//		}
//		lambda.Start(handler)
//	}
//
//	func count(ctx context.Context, r *kinesis.Record[Click]) error { ... }
//
// The handler decodes each record's data, runs records of different partition keys concurrently and those of one in
// their order, and answers with the one place from which the shard has to be delivered again.
//
// # The answer
//
// Lambda takes the lowest sequence number in an answer as its checkpoint, and delivers everything from there on again:
// also what succeeded behind it (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html).
// With a guard, the records of other partition keys go on after a failure, since what succeeded does not run again.
// Without one they would, so a shard is serial and stops at its first failure.
//
// # What the function cannot see
//
// These are settings of the event source mapping.
//
//   - ReportBatchItemFailures must be in its FunctionResponseTypes. Without it Lambda ignores the answer and moves past
//     the whole batch, failed records included. Where it cannot be set, use batch.ErrorOnAnyFailure.
//   - MaximumRetryAttempts and MaximumRecordAgeInSeconds are unlimited by default: a record that never succeeds blocks its
//     shard until the stream forgets it. When they are used up Lambda discards the rest of the batch, also the records
//     that have never run, and sends only their sequence numbers to the on-failure destination. DeadLetter with MaxAttempts
//     gives up one record instead, and takes MaxAttempts-1 of the batch's retries for it. So set MaximumRetryAttempts to 3
//     or more, and with DeadLetter to (MaxAttempts-1) * n + 2 or more, where n is how many records of one partition key may
//     fail in one batch: at worst all of them, those inside of aggregates too. Whether a checkpoint that moves resets the
//     count is not documented.
//   - BisectBatchOnFunctionError makes the batch smaller that a crash repeats.
//   - ParallelizationFactor above 1 keeps the order of each partition key, and of the records of a KPL aggregate no
//     other than that of the aggregate's own: see below.
//   - TumblingWindowInSeconds needs NewWindowHandler.
//
// Start the handler itself: lambda.Start(handler). lambda.Start(handler.Invoke) takes Invoke for a function of
// base64 text, and lambda.Start(handler.Handle) lets the runtime decode the whole event first, in which one broken
// record rejects all others.
//
// # Order
//
// Records with the same partition key run one at a time, in their order, and a failed one takes those behind it with
// it. Records without a partition key, as there are in streams that distribute records by themselves, are kept in one
// order for the shard. Options.Serial keeps all of a shard in one.
//
// A record whose key is held by another worker waits in its place for as long as there is time. After a crash that is until
// the deadline of the invocation that crashed. Lambda delivers again at once, with the same timeout, so this delivery
// usually waits until its own end, fails and takes a retry; the one after it runs. Options.Timeout, set to what one
// record needs, shortens the lease to two seconds more than that (six with DeadLetter), and the first delivery takes over.
//
// # Aggregates of the Kinesis Producer Library
//
// A record that is a KPL aggregate is taken apart, and each of its records runs in the order of its own partition key. One
// that fails makes the aggregate come back; those that are done do not run again, if there is a guard. The order
// of a partition key across aggregates holds at a parallelization factor of 1 only: above that, Lambda goes by the
// partition keys of the aggregates (https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html). The library
// sends records again when a shard was split meanwhile, and both copies arrive. Only a business key recognises those.
// Options.KeepAggregates leaves aggregates as they are; switching it changes keys. While a batch runs, each record of an
// aggregate takes about 800 bytes beside its data, so aggregates of very small records need a smaller batch or more memory.
//
// # Keys
//
// A record's key is the stream's ARN, without the suffix of a consumer with enhanced fan-out, and its eventID, which is
// the shard and the sequence number; in an aggregate also its number there. It survives redeliveries and resharding.
// A producer that sends again after a lost reply makes another record, which only a business key recognises: by a
// method IdempotencyKey() string of the data's type, by KeyOf, or by Options.Key.
//
// # Guard or watermark
//
// A guard writes twice for each record, about $1.25 for a million on demand. It remembers records one by one, so keys run
// beside each other, and only what was in flight in a crash can repeat. A watermark writes twice for each batch, about
// $0.01 for a million in batches of a hundred. It remembers a place in the shard, so the shard is strictly serial,
// everything since the last batch can repeat after a crash, and at a parallelization factor above 1 it loses records:
// see AssumeParallelizationFactorOne. Use a guard, unless its price is more than the work's, the work bears
// repeating, and the factor is 1 and stays 1.
package kinesis
