// Package dynamodbstream handles batches of a DynamoDB stream, the changes of a table's items, in a Lambda function.
//
//	func main() {
//		handler, err := dynamodbstream.NewHandler(audit, func(o *dynamodbstream.Options) { o.Idempotency = guard })
//		if err != nil {
//			log.Fatal(err)
//		}
//		lambda.Start(handler)
//	}
//
//	func audit(ctx context.Context, c *dynamodbstream.Change[Order]) error { ... }
//
// The handler decodes the images of each change into an Order by its dynamodbav tags, runs the changes of different items
// concurrently, and answers with the sequence number of the first change that failed, so that the stream comes back from
// there. With a guard a change whose work is done does not run again, however often it is delivered.
//
// # Order
//
// A stream has an order for each item: the one in which the item was changed. The changes of one item run one at a time
// in that order, and a failed change takes the rest of its item's with it, so that nothing overtakes it.
//
// A change whose key is held by another worker waits in its place for as long as there is time. After a crash that is until
// the deadline of the invocation that crashed. Lambda delivers again at once, with the same timeout, so this delivery
// usually waits until its own end, fails and takes a retry; the one after it runs. Options.Timeout, set to what one
// change needs, shortens the lease to two seconds more than that (six with DeadLetter), and the first delivery takes over.
//
// Lambda knows one checkpoint for a shard, and everything behind it comes again, also what succeeded. With a guard the
// other items of the batch go on after a failure, since their changes do not run again. Without one, or where changes
// may run unprotected, the batch runs one change after the other and stops at the first that fails.
//
// # Keys
//
// A change's key is the stream's ARN and the eventID: the change's own, in whatever batch it comes. The stream has each
// change once (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html), but Lambda delivers it at
// least once. It is kept for 25 hours, an hour longer than the stream keeps the change.
//
// The handler's T is an item and not a message: a method IdempotencyKey that it may have is not asked. Two changes of an
// item are two pieces of work, and with a key of the item's the second would pass for done and be lost. KeyOf and
// Options.Key therefore see the whole change. A key of one's own is right only where it names the change, for example by
// a version that every write increments.
//
// # What the function cannot see
//
// The event source mapping decides what becomes of a failure, and it has to be told
// (https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html):
//
//   - FunctionResponseTypes needs ReportBatchItemFailures. Without it Lambda ignores which change failed and takes the
//     whole batch for done, the failed changes too, and the function has no way to find out
//     (https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html). Where it cannot be set, use
//     batch.ErrorOnAnyFailure.
//   - MaximumRetryAttempts is infinite by default: a change that always fails holds up its shard, and all items in it,
//     until the stream forgets it after 24 hours. Set it to 3 or more, so that a throttled store or a crash does not cost
//     a change, and with DeadLetter to (MaxAttempts-1) * n + 2 or more, where n is how many changes of one item may fail in
//     one batch: when the retries are used up, Lambda discards the batch, the good changes too.
//   - BisectBatchOnFunctionError splits the batch after a function error, and at the reported change after a failed
//     one, so that a change that crashes the function ends alone.
//   - DestinationConfig.OnFailure says where Lambda sends word of what it discards when the retries run out. A queue or a
//     topic gets shard and sequence numbers, and the changes can be read from the stream as long as it has them. Without
//     a destination they are gone without a trace.
//   - ParallelizationFactor may be more than 1: the changes of an item stay in order.
//   - FilterCriteria drop what does not match before the function is called. A filter on userIdentity keeps deletions
//     by TTL away.
//
// The view type of the stream decides which images there are: Change.Old and Change.New are nil where it has none.
//
// Start the handler itself: lambda.Start(handler). lambda.Start(handler.Invoke) takes Invoke for a function of base64
// text, and lambda.Start(handler.Handle) lets the runtime decode the whole event first, in which one broken record rejects
// all others.
//
// The table of a guard may have a stream itself, for example to copy it. Its claims and completions, and their deletion by
// TTL, are changes like all others: do not let a handler of that stream use a guard with that table, since each change
// would make more.
package dynamodbstream
