// Package lambdatest runs Lambda functions in a test. It is what the kits share that test a function behind a source,
// such as sqstest for SQS: those make events and read answers, and a Function of this package runs the invocations in
// between. A test that uses a kit meets lambdatest in the handler that it passes, in the kit's faults, and in Checkpoint
// and Crash, which its own code calls.
//
// A kit makes one Function, gives the handler's store to Function.Store, and calls Function.Start for each event:
//
//	f := lambdatest.NewFunction(lambdatest.FunctionOptions{Timeout: 30 * time.Second})
//	defer f.Close()
//	f.Start(ctx, handler, lambdatest.Event{Payload: payload, RecordIDs: ids, Attempt: 1}, func(r lambdatest.Result) {
//		if r.Ending == lambdatest.Answered {
//			failed, err := lambdatest.ReadFailures(r.Response, ids)
//			...
//
// # Faults
//
// A function can fail between any two of its steps, and a test shows little that only tries the easy ones.
// FunctionOptions.Crash is asked at each Point: before the handler is invoked, at every store call before it is applied
// and after, wherever the handler calls Checkpoint, and before its answer is received. Randomly makes a seeded one.
// FunctionOptions.StoreFault delays or refuses store calls. Fault.Part lets a call for many records fail in its middle, and
// with a crash at its StoreReply the function dies there.
//
// For the store calls to take part, the function under test uses the store that Function.Store returns, or the kit's
// method of that name. Which invocation a call belongs to is told by its context, which is derived from Invoke's.
//
// # Dead invocations
//
// An invocation that crashed, panicked or timed out is dead, as if its process had been killed. Its answer is ignored.
// None of its store calls arrives any more. Go cannot kill goroutines, so those of a dead invocation run up to their
// next store call or checkpoint, and are parked there: nothing that they have deferred runs, no lock of theirs is
// released, until Close. A goroutine that makes no such call runs on: it still logs, calls hooks and middleware, and
// works off records that need no store. What a test counts in a hook or reads in a log may thus come from a dead
// invocation. A handler whose effects matter calls Checkpoint before each of them, and so does a hook or middleware
// that counts.
//
// A crash kills one invocation, which is all that its execution environment was doing. Invocations that overlap with
// it live on, and so does what the handler keeps in memory from one invocation to the next, which on AWS would be
// gone. A goroutine that is left over from an invocation that has answered is not dead: execution environments are
// frozen and thawed, and so it may go on at any time.
//
// # The payload
//
// The bytes that Invoke gets are overwritten when it returns, and used again for a later event, as by aws-lambda-go.
// A handler that keeps a part of them finds question marks there, and the race detector reports a goroutine that
// still reads them.
//
// # Time
//
// A Function knows no clock but package time's. In a testing/synctest bubble a test therefore takes no time, however
// long the timeouts are that it waits for, and every moment in it is exact.
//
// A bubble's clock stops when the test function returns, and testing/synctest reports a deadlock if a goroutine is
// left then, even one that only sleeps. Close lets go what is parked. A handler that outlives its answer, because it
// ignores its context and was given up, is the test's own: it must end before the bubble does, so let the test sleep
// past its end before it returns:
//
//	time.Sleep(time.Minute) // the handler hangs for 50 seconds, and this takes none
package lambdatest
