// Package dynamodbstreamtest tests Lambda functions that read DynamoDB streams. Its Table is a table in memory that
// writes the changes of its items to a stream, and behaves like the event source mapping that reads that: records are
// delivered in batches, in order for each item, until the function has finished them or the mapping gives them up.
//
// What is tested is any lambdatest.Handler: everything with the method Invoke of lambda.Handler, such as the handlers of
// package dynamodbstream or what lambda.NewHandler makes of an ordinary function.
//
//	t, err := dynamodbstreamtest.NewTable("orders", dynamodbstreamtest.Key{Partition: "id"})
//	...
//	defer t.Close()
//	t.Put(dynamodbstreamtest.Item{"id": events.NewStringAttribute("order-1")})
//	err = t.Drain(ctx, handler) // until every shard is drained
//
// A test that needs no table passes Payload(NewEvent("orders", ...)) to Invoke itself.
//
// # The table
//
// Put, Update, Delete and Expire change items as PutItem, UpdateItem, DeleteItem and the end of an item's time to live
// do. Each writes one record with the images of Options.StreamViewType, and none if the item stays what it was. Sets are
// compared in order and numbers as text, where DynamoDB compares what they are.
//
// Items go to shards by the hash of their partition key. Rollover and Split close a shard, as DynamoDB does now and
// then.
//
// # Processing
//
// The stream is read as package kinesistest describes, which shares the implementation: the lowest sequence number
// reported is the checkpoint, and so on, with time, faults and tumbling windows. In brief, what is different here:
//
//   - What an answer names a record by is the sequence number of dynamodb.SequenceNumber. Sequence numbers have 3 to 25
//     digits here, so that comparing them as text goes wrong.
//   - Above a ParallelizationFactor of 1, order holds for each item, which is its partition key and its sort key.
//   - Times are whole seconds.
package dynamodbstreamtest
