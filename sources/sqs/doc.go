// Package sqs handles batches of an SQS queue, standard or FIFO, in a Lambda function.
//
//	func main() {
//		handler, err := sqs.NewHandler(placeOrder, func(o *sqs.Options) { o.Idempotency = guard })
//		if err != nil {
//			log.Fatal(err)
//		}
//		lambda.Start(handler)
//	}
//
//	func placeOrder(ctx context.Context, m *sqs.Message[Order]) error { ... }
//
// The handler decodes each message's body, runs the messages concurrently, and answers with a partial batch response
// that names those that failed, so that only these come back. With a guard a message whose work is done does not run
// again, however often the queue delivers it.
//
// # What the function cannot see
//
// The event source mapping must have ReportBatchItemFailures in its FunctionResponseTypes. Without it Lambda ignores the
// partial batch response and deletes the whole batch, the failed messages too, and the function has no way to find out
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html). Where it cannot be set, use
// batch.ErrorOnAnyFailure.
//
// Start the handler itself: lambda.Start(handler). lambda.Start(handler.Invoke) takes Invoke for a function of
// base64 text, and lambda.Start(handler.Handle) lets the runtime decode the whole event first, in which one broken
// record rejects all others.
//
// # Order
//
// A standard queue has no order, and its messages run concurrently; a message group there is a tenant of a fair queue.
// A queue whose ARN ends in ".fifo" has an order for each message group: the groups of a batch run beside each other,
// and a failed message takes the rest of its group with it, so that nothing overtakes it. With Options.StopOnFailure it
// takes the rest of the batch.
//
// # Keys
//
// A message's key is its messageId, unless the payload names a business key: by a method IdempotencyKey() string of the
// payload type, by KeyOf, or by Options.Key. The messageId survives redeliveries, but a redrive from a dead-letter queue
// gives the message a new one, and so does a producer that sends twice: only a business key recognises these.
//
// Under its messageId, and without a fingerprint, a message is decoded once it is claimed, and not at all if it is done
// already. What cannot be decoded is claimed too, fails like any other, and goes to the dead-letter function inside its
// claim, once.
//
// # Envelopes
//
// What arrives is often an event of another service, in the form that this one gives to it. Options.Unwrap names the forms,
// the outermost first, and the handler gets what is inside. For notifications of S3 that go through an SNS topic:
//
//	handler, err := sqs.NewHandler(index, func(o *sqs.Options) {
//		o.Unwrap = []sqs.Envelope{sqs.SNS, sqs.S3}
//		o.Idempotency, o.Key = guard, sqs.S3ObjectKey
//	})
//
//	func index(ctx context.Context, m *sqs.Message[events.S3EventRecord]) error { ... }
//
// Nothing is guessed: without the option a body is what it is, however much it looks like an envelope, and with it a message
// whose body has another form fails, and no other message does. A subscription with raw message delivery sends no
// envelope of SNS; SNSOrRaw takes both. View.Envelope has what was opened, for example for the topic of a notification.
//
// An S3 event may have several records. Each of them is one call of the handler, with an ID, a key and an outcome of its
// own, and the message is done when all of them are. If one fails the message comes back, once and whole; with a guard
// those that are done do not run again. A record that is dead-lettered goes alone. The test message that S3 sends for a new
// configuration is batch.Ignored: no handler runs and nothing fails.
//
// The messageId is that of the last hop, and a fan-out or a redrive makes another. SNSMessageID, EventBridgeID and
// S3ObjectKey are keys for Options.Key that name the event itself, on whichever way it comes. S3ObjectKey also names what S3
// sends by EventBridge, whose detail is no S3 event: unwrap EventBridge, and not S3, for that. Where S3 is unwrapped it is the
// only one of the three, since the records of one S3 event share all that is around them: the other two are then missing.
package sqs
