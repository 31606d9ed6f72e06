// Package watermark keeps how far one consumer has come in each shard of a Kinesis stream: one item a shard instead of
// one a record.
//
// A watermark loses records where the parallelization factor of the event source mapping is above 1. Lambda then has
// several batches of a shard in progress at once, each with the records of some partition keys, and the batch that ends
// first moves the watermark past records of the others that have not been run. When those fail, or their function
// crashes, they come again, are taken for done and are skipped. A function cannot see the factor. Who uses a watermark
// promises that it is 1, that records of a shard run one after another, and that a shard stops at its first failure.
//
// It is for Kinesis alone. The events of a DynamoDB stream do not say which shard they are of, so that there is no place to
// remember, and package dynamodbstream has no such option.
//
// # How it is used
//
// A Store has three transitions:
//
//	position, err := store.Claim(ctx, ...) // the shard is this owner's until its lease ends
//	for records in order {
//		// Skip the record if it is at or before the position. Otherwise do its work, and stop at the first that fails.
//	}
//	err = store.Advance(ctx, ...) // to the last record that is done; Release gives the shard back
//
// and Rewind, which is for people: it makes records run again that are done, or passes over some that never will be.
//
// A batch costs two writes, however many records it has. What is done since the last Advance runs again after a crash;
// Advance without Release after every record makes that one record, for one write each.
//
// # What is promised
//
// No record at or before the position is run again by a consumer that asks, until the position expires or is rewound.
// One owner has a shard at a time. The position never goes back but by Rewind. Work that was begun can be repeated, or
// overlap its repeat, if its Advance was not stored before its lease ended: after a crash, after a function that ignored
// its cancelled context, after an Advance that the store refused.
package watermark
