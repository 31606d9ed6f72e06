// Package sqstest tests Lambda functions that read SQS queues. Its Queue is a queue in memory that behaves like SQS
// and like the event source mapping that reads it: messages are received in batches, come back when their visibility
// timeout runs out, move to a dead-letter queue, keep their order in a FIFO queue, are sometimes delivered twice,
// and are deleted according to the function's answer as AWS reads it.
//
// What is tested is any Handler: everything with the method Invoke of lambda.Handler, such as the handlers of
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
// time, where one sets short timeouts.
//
// A bubble's clock stops when the test function returns, and testing/synctest reports a deadlock if a goroutine is
// left then, even one that only sleeps. Close lets go what is parked. A handler that outlives its answer, because it
// ignores its context and was given up, is the test's own: it must end before the bubble does, so let the test sleep
// past its end, after Drain and before it returns:
//
//	time.Sleep(time.Minute) // the handler hangs for 50 seconds, and this takes none
//
// # Faults
//
// A function can fail between any two of its steps, and a test shows little that only tries the easy ones.
// Options.Crash is asked at each Point: before the handler is invoked, at every store call before it is applied and
// after, wherever the handler calls Checkpoint, and before its answer is received. Randomly makes a seeded one.
// Options.StoreFault delays or refuses store calls, and Options.DuplicateProbability and Queue.Redeliver deliver
// messages again.
//
// For the store calls to take part, the function under test uses the store that Queue.Store returns. Which
// invocation a call belongs to is told by its context, which is derived from Invoke's.
//
// An invocation that crashed or timed out is dead, as if its process had been killed. Its answer is ignored, and all
// its messages come back. None of its store calls arrives any more. Go cannot kill goroutines, so those of a dead
// invocation run up to their next store call or checkpoint, and are parked there: nothing that they have deferred
// runs, no lock of theirs is released, until Close. A goroutine that makes no such call runs on: it still logs, calls
// hooks and middleware, and works off records that need no store. What a test counts in a hook or reads in a log may
// thus come from a dead invocation. A handler whose effects matter calls Checkpoint before each of them, and so does
// a hook or middleware that counts.
//
// A crash kills one invocation, which is all that its execution environment was doing. Invocations that overlap with
// it live on, and so does what the handler keeps in memory from one invocation to the next, which on AWS would be
// gone. A goroutine that is left over from an invocation that has answered is not dead: execution environments are
// frozen and thawed, and so it may go on at any time.
//
// # What AWS does with the answer
//
// With ReportBatchItemFailures the mapping deletes the messages that the answer does not name. An answer that names
// an unknown identifier, or an empty one, or none, or that is not JSON, makes the whole batch come back, and so do
// errors and panics. An answer whose key batchItemFailures is misspelt is an empty one, and everything is deleted.
// Without ReportBatchItemFailures (Options.WithoutReportBatchItemFailures) everything is deleted unless there was an
// error. Delivery, which Options.Observe gets, says for every invocation what was deleted and why.
//
// # The payload
//
// The bytes that Invoke gets are overwritten when it returns, and used again for a later event, as by aws-lambda-go.
// A handler that keeps a part of them finds question marks there, and the race detector reports a goroutine that
// still reads them.
//
// # What it is not
//
// Standard queues deliver in the order sent as long as nothing comes back, where SQS promises none. Messages are
// kept for ever. There are no throttled invocations, no filters, no long polling and no scaling: up to
// Options.Concurrency invocations start as soon as there are messages. Receive counts are exact except for
// duplicates.
package sqstest
