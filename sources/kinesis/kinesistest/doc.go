// Package kinesistest tests Lambda functions that read Kinesis streams. Its Stream is a stream in memory that behaves
// like Kinesis and like the event source mapping that reads it: records are delivered shard by shard in batches, come
// again from the lowest sequence number on that the function reports, are split off or given up, and keep their order.
//
// What is tested is any lambdatest.Handler: everything with the method Invoke of lambda.Handler, such as the handlers of
// package kinesis or what lambda.NewHandler makes of an ordinary function.
//
//	s, err := kinesistest.NewStream("clicks")
//	...
//	defer s.Close()
//	s.Put(kinesistest.Record{PartitionKey: "visitor-7", Data: []byte(`{"page":"home"}`)})
//	err = s.Drain(ctx, handler) // until every shard is drained
//
// A test that needs no stream passes Payload(NewEvent("clicks", ...)) to Invoke itself.
//
// # Processing
//
// Each shard has one poller, which delivers its records in order, one invocation at a time. What AWS documents is
// reproduced (https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html and its siblings):
//
//   - The lowest sequence number that the answer reports is the checkpoint. What is before it is done with, and comes
//     no more; everything from it on comes again, whether it has succeeded or not.
//   - An error, a panic, a timeout, a crash, an answer that is not JSON, an identifier that is empty or not in the batch:
//     all of these are the failure of the whole batch, which comes again. For an unknown identifier that is a guess.
//     An answer whose key batchItemFailures is misspelt is an empty one, and everything is done with.
//   - With Options.BisectOnError a batch that fails as a whole is split in half, and the halves come in order; one that
//     fails in part is split at its checkpoint. Neither uses up a retry. A batch whose first record is reported is not
//     split and uses one up.
//   - After Options.MaximumRetryAttempts retries, what is left of the batch is discarded, and so is a record that is older
//     than Options.MaximumRecordAge when its turn comes. Stream.Discarded is the on-failure destination. With the
//     defaults, which are AWS's, a record that always fails blocks its shard.
//   - A batch that comes again as it was waits: 100 ms, and twice as long each time up to 10 s. AWS waits too, and does
//     not document how long. What is left of a batch after progress comes at once.
//   - Above an Options.ParallelizationFactor of 1 the records of a shard go by their partition key to that many lanes,
//     which have checkpoints and invocations of their own. Aggregates of the Kinesis Producer Library all have the
//     partition key "a".
//   - A shard that was split or merged is read to its end before its children are.
//
// Which records a Drain has delivered when, and what became of them, Options.Observe and Stream.Histories say.
//
// # Tumbling windows
//
// With Options.TumblingWindow an event has the records of one window, by the time of their arrival, and the state that
// the last good answer had. An answer must have a state, also a final one. A window is over when a later record has come,
// when its shard has ended, or two minutes after its end; then comes its final invocation, which has the records
// that are left, or none. A state of more than 1 MB ends its window early: a final invocation without records follows,
// in which isWindowTerminatedEarly is true, and the window goes on with a fresh state. It has a second final invocation
// in its time if more records come.
//
// # Time
//
// A Stream knows no clock but package time's. In a testing/synctest bubble a test therefore takes no time, however
// long the delays and windows are that it waits for, and every moment in it is exact. See package lambdatest for what a
// bubble demands of handlers that outlive their answer.
//
// # Faults
//
// Options.Crash and Options.StoreFault interrupt the function at the points that package lambdatest describes, with the
// store that Stream.Store returns. Options.DuplicateProbability and Stream.Redeliver deliver records again that have
// succeeded.
//
// # What it is not
//
// Records are kept for ever: a stream has no retention. There are no throttled invocations, no filters, no starting
// positions but the oldest record, and no function versions. Records are there as soon as they are put, and shards are
// closed and opened at once.
package kinesistest
