// Package sqstest tests Lambda functions that read SQS queues. Its Queue is a queue in memory that behaves like SQS
// and like the event source mapping that reads it: messages are received in batches, come back when their visibility
// timeout runs out, move to a dead-letter queue, keep their order in a FIFO queue, are sometimes delivered twice,
// and are deleted according to the function's answer as AWS reads it.
//
// What is tested is any lambdatest.Handler: everything with the method Invoke of lambda.Handler, such as the handlers of
// package sqs or what lambda.NewHandler makes of an ordinary function.
//
//	q, err := sqstest.NewQueue("orders")
//	...
//	defer q.Close()
//	q.Send(sqstest.Message{Body: `{"id":"order-1"}`})
//	err = q.Drain(ctx, handler) // until the queue is empty
//
// A test that needs no queue passes Payload(NewEvent("orders", ...)) to Invoke itself.
//
// # Time
//
// A Queue knows no clock but package time's. In a testing/synctest bubble a test therefore takes no time, however
// long the visibility timeouts are that it waits for, and every moment in it is exact. The same code runs in real
// time, where one sets short timeouts. A handler that outlives its answer must end before the bubble does; the
// documentation of lambdatest says how.
//
// # Faults
//
// Package lambdatest runs the invocations, and says what can go wrong with them, what becomes of the goroutines of a
// dead one, and that the payload is overwritten when Invoke returns. Options.Crash and Options.StoreFault are its
// faults. For store calls to take part, the function under test uses the store that Queue.Store returns. All messages of
// an invocation that crashed or timed out come back.
//
// Options.DuplicateProbability and Queue.Redeliver deliver messages again.
//
// # What AWS does with the answer
//
// With ReportBatchItemFailures the mapping deletes the messages that the answer does not name. An answer that names
// an unknown identifier, or an empty one, or none, or that is not JSON, makes the whole batch come back, and so do
// errors and panics. An answer whose key batchItemFailures is misspelt is an empty one, and everything is deleted.
// Without ReportBatchItemFailures (Options.WithoutReportBatchItemFailures) everything is deleted unless there was an
// error. Delivery, which Options.Observe gets, says for every invocation what was deleted and why.
//
// # What it is not
//
// Standard queues deliver in the order sent as long as nothing comes back, where SQS promises none. Messages are
// kept for ever. There are no throttled invocations, no filters, no long polling and no scaling: up to
// Options.Concurrency invocations start as soon as there are messages. Receive counts are exact except for
// duplicates.
package sqstest
