// Package eventbridge handles what EventBridge delivers to a Lambda function.
//
//	func main() {
//		handler, err := eventbridge.NewHandler(invoice, func(o *eventbridge.Options) { o.Idempotency = guard })
//		if err != nil {
//			log.Fatal(err)
//		}
//		lambda.Start(handler)
//	}
//
//	func invoice(ctx context.Context, e *eventbridge.Event[Order]) error { ... }
//
// The handler decodes each event's detail, runs the events of an array concurrently, and finishes all of them, whichever
// fails. Then it returns one error if one did. EventBridge knows no partial answer, so everything comes back, and the guard
// is what keeps the events that are done from running again.
//
// # What the function cannot see
//
// These are settings of the rule, the schedule, the subscriber, or the function.
//
//   - There are two retry policies. A rule's is for the delivery to Lambda: 185 attempts in 24 hours by default
//     (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html). The function's own is for its
//     errors: EventBridge invokes it asynchronously, and Lambda tries it twice more, about one and three minutes after it
//     failed (https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html). The function's
//     MaximumRetryAttempts and MaximumEventAge change that.
//   - There are two dead-letter queues. The rule's gets events that did not reach Lambda, the function's, or its on-failure
//     destination, those that failed three times. An event for which neither is set is lost. DeadLetter of Options is a
//     third, for single events of an array and with the error.
//   - Events arrive twice without any error: a rule may fire twice, and so may Lambda's queue deliver.
//   - A subscriber of a custom event bus has a policy of its own, 5 attempts in 300 seconds by default, and delivers arrays
//     of up to 500 events. With the invocation type REQUEST_RESPONSE it gives up after InvocationTimeoutSeconds, 1 to 30,
//     and tries again while the function still runs
//     (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-target-lambda.html).
//
// Start the handler itself: lambda.Start(handler). lambda.Start(handler.Invoke) takes Invoke for a function of base64 text,
// and lambda.Start(handler.Handle) lets the runtime decode the event first, which fails for an array and for a malformed time.
//
// # Retries and leases
//
// An event whose key is held by another invocation waits for it, as long as there is time, and runs if the other gives up.
// After a crash the key is held until the lease ends, which is at the deadline of the invocation that crashed. Both of
// Lambda's retries can come before that. The first comes a minute later and has the same timeout, so it has about a minute
// left when the lease ends, whatever that timeout is. Work that takes longer is cut off then, and left to the second. All
// of the wait is paid for. Options.Timeout shortens the lease: below some 50 seconds the first retry finds the key free.
//
// Set Timeout also where the target gives up before the function does. A REQUEST_RESPONSE subscriber with
// InvocationTimeoutSeconds of 10 delivers again after ten seconds, while the function's context says minutes. With a
// guard the duplicate waits and is replayed, so nothing runs twice, but work that nobody waits for any more should end:
// set Timeout a little below InvocationTimeoutSeconds.
//
// # What is an event
//
// The payload is one event, or an array of them. Each is one of these:
//
//   - An envelope: an object with the members detail-type and source, and detail or version. One with a version and
//     without detail has lost it, and fails.
//   - One with metadata, as a subscriber's transformer WITH_METADATA makes: an object with the members Data and
//     SystemMetadata, which is an object. Data is an envelope, a string that holds one, or what was published without one.
//   - Data without an envelope: anything else that is not null, such as PutRawEvents publishes, or as InputPath, an input
//     transformer or a schedule's input make it. Detail is decoded from all of it. A payload that is one array of such data
//     cannot be told from several events.
//
// A record of SQS, of a stream, of S3 or SNS, outside of metadata, is none, and neither is an event that has such a record among
// its Records, or the eventSourceARN of a stream's window: it fails, so that a function behind the wrong source does not
// answer it with success. An empty array is an error as well. An event with an id or source that is no string fails alone.
//
// A detail that is a JSON string stands for its text, if a T of string is asked for, or if the text is an object or array:
// see Options.Decode. A missing or malformed time is a zero time.
//
// # Order
//
// A subscriber of a custom event bus can keep the order of each event group. With the transformer WITH_METADATA the group of an
// event is known, and the events of one group run one at a time, in the order of the array; a failed one takes those behind
// it with it. Without metadata there is no order, unless Options.Lane says which.
//
// # Keys
//
// An event's key is its source and id. The same event has the same key with metadata and without. The tick of a scheduled
// rule has the rule's ARN and the time, since a rule may fire twice for it. These have no key by themselves:
//
//   - Data without an envelope. With metadata they have the id that the bus gave them.
//   - What Scheduler sends by default, since nothing in it is known to be the same at every attempt. As a
//     schedule's input, this gives it a key, and Detail:
//     {"source":"<aws.scheduler.schedule-arn>","id":"<aws.scheduler.scheduled-time>","detail-type":"Schedule","detail":{}}.
//     <aws.scheduler.execution-id> is another one at each attempt, and no part of a key
//     (https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html).
//
// They fail with idempotency.ErrKeyMissing, unless KeyOf, Options.Key or a method IdempotencyKey() string of the detail's type
// name them. An id is not enough where a producer publishes again after a lost reply, or where a global endpoint
// replicates events (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-ge-best-practices.html): each copy
// has an id of its own, and only a key out of the detail recognises it.
//
// # Replays
//
// A replay from an archive delivers the events with their ids. Those that were done within the life of their keys, 31 hours by
// default, do not run again; older ones do, unless Options.MaxAge gives them up. Options.RunReplays makes all run again, once
// for each name of a replay and whatever their age.
package eventbridge
