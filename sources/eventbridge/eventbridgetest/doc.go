// Package eventbridgetest tests Lambda functions that EventBridge invokes. Its Bus is an event bus in memory that behaves
// like EventBridge, and like the queue in which Lambda keeps asynchronous invocations: events come again after an error,
// are throttled, given up, sometimes delivered twice, and replayed from an archive.
//
// What is tested is any lambdatest.Handler: everything with the method Invoke of lambda.Handler, such as the handlers of
// package eventbridge or what lambda.NewHandler makes of an ordinary function.
//
//	b, err := eventbridgetest.NewBus("orders")
//	...
//	defer b.Close()
//	b.Put(eventbridgetest.Event{Source: "com.example.orders", DetailType: "Order Placed", Detail: `{"id":"o1"}`})
//	err = b.Drain(ctx, handler) // until each event is done or given up
//
// A test that needs no bus passes Payload(NewEvent(eventbridgetest.Event{...})) to Invoke itself.
//
// # Rules
//
// By default all events go to the target of one rule, a function that Lambda invokes asynchronously. An event goes through
// two hands, which each have a retry policy and a dead-letter queue of their own:
//
//   - EventBridge hands it to Lambda. Options.TargetFault keeps it from that. It tries again after 1 second, 2, 4, and so on
//     up to 10 minutes, with jitter, for 185 times or 24 hours by default, and at once gives up what is not retriable.
//   - Lambda invokes the function. An error, a panic, a crash or a timeout has the event tried again 1 minute after its end,
//     and a second time 2 minutes after that one's: Options.FunctionRetry says how often. Options.Throttle keeps it from
//     being invoked, and uses up no retry. After 6 hours with Lambda an event is given up.
//
// What the function answers is of no account.
//
// # Subscribers
//
// With Options.Subscriber the bus is a custom event bus. The function gets arrays of events, with their metadata if
// that is asked for, and in the order of their groups if the subscriber is a FIFO one. With RequestResponse the
// subscriber calls the function and waits for its answer, for InvocationTimeout at most. If there is none by then it calls
// again, while the function may still run: on the same events, at the same time. TargetRetry, by default 5 retries in 5
// minutes, says how often. An error is the failure of the whole batch, which comes again as it was.
//
// # Duplicates and replays
//
// Options.DuplicateProbability and Bus.Redeliver deliver events again although nothing went wrong. Bus.Replay delivers those
// of a time again, with the name of the replay. Bus.Tick called twice for one time is a scheduled rule that fires twice.
// A producer that sends twice is Bus.Put called twice: the second event has an id of its own.
//
// # Time
//
// A Bus knows no clock but package time's. In a testing/synctest bubble a test therefore takes no time, however long the
// retries are that it waits for, and every moment in it is exact. The same code runs in real time, where one sets a short
// RetryDelay. A handler that outlives its answer must end before the bubble does; the documentation of lambdatest says how.
//
// # Faults
//
// Package lambdatest runs the invocations, and says what can go wrong with them, what becomes of the goroutines of a
// dead one, and that the payload is overwritten when Invoke returns. Options.Crash and Options.StoreFault are its
// faults. For store calls to take part, the function under test uses the store that Bus.Store returns.
//
// # What it is not
//
// A bus has one rule or subscriber, which takes every event: there are no patterns, and no transformers but WITH_METADATA.
// Events are kept for ever. A rule that fires twice for one event is a duplicate like any other. A retry is due to the
// nanosecond, where Lambda says "about" a minute. How EventBridge spaces its own retries is not documented, nor whether a
// subscriber's batch comes again as it was. The documentation has said both that a failed call of a FIFO subscriber holds up
// its own groups and that it holds up all: here it is all, as in the newer text
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-retry.html).
package eventbridgetest
