// Package dynamostore keeps idempotency claims in a DynamoDB table.
//
//	client := dynamodb.NewFromConfig(cfg)
//	store := dynamostore.New(client, "idempotency")
//
// The package never loads configuration: the client, its credentials, its Region and its retries are the caller's.
//
// # Table
//
// The table has a partition key of type S, named id by default, and no sort key. TTL should be enabled on the
// expiration attribute; it deletes entries some days after they have expired, and nothing depends on when.
// CreateTable makes such a table. An item is, under the names that Options can change:
//
//	id                      S  the key; with a sort key, the partition's value, and the key is the sort key
//	status                  S  INPROGRESS or COMPLETED
//	expiration              N  epoch seconds, the TTL attribute
//	in_progress_expiration  N  epoch milliseconds: the end of the lease; 0: the claim was released
//	data                    S  the result as JSON; absent: none is stored
//	validation              S  the payload's fingerprint; absent: none
//	owner                   S  the token of the claim
//	attempts                N  only where attempts are counted
//
// A completed item has no attempts, and no in_progress_expiration or one of 0. The names are those of Powertools for AWS Lambda;
// Mayfly makes them those of Mayfly.Idempotency. An item whose status is neither of the two, or whose attributes have
// other types, is neither claimed nor replayed: it is an error that names what was found.
//
// With Options.SortKeyAttribute all keys of a namespace share one partition, or all keys of the table where
// PartitionValue is set. DynamoDB limits a partition to 1,000 write units a second, which is some 500 records
// ("Best practices for designing and using partition keys effectively", DynamoDB Developer Guide). A table of its own,
// without a sort key, has no such limit.
//
// # Native data
//
// With Options.NativeData a result is kept as a value of its own type, as Powertools for TypeScript does, so that other
// tools and queries see into it. What comes back is JSON of the same value, but not of the same bytes: members come in
// the order of their names, 1.0 and 1e0 are 1, -0 is 0. Completed without the result (ErrResultNotStored) is one with a
// number of more than 38 significant digits or outside 1E-130 to 1E126, which a float64 can be; with more than 32 objects
// and arrays in one another; with the same member twice, or one without a name; and what is no valid JSON or Unicode.
//
// Both forms are read whatever the option says, so that it can be changed while results live. A string that is JSON is
// taken for JSON text, and any other for a native string; a native string that would be JSON, such as "123", is
// therefore stored as text, with its quotes. Another tool's native "123" is replayed as a number. A native binary is
// replayed as a string in base64, a set as an array.
//
// # Sharing a table
//
// The guarantee on a table is that of the weakest who writes to it. Powertools and Mayfly update and delete without a
// condition on the owner: their claims are respected here, but they can complete, overwrite and delete claims of this
// package, and after that the work can be done twice. They also take over whatever has expired, so a claim here always
// expires later than its lease ends. The keys of such tools are what they make of them, and those of a guard have its
// namespace in front: two tools see the same work under one key only if that was brought about.
//
// Two functions that consume the same stream or queue for different purposes need a namespace each. In one namespace
// they have the same keys, and what one of them has done the other takes for done: it never runs. Two versions of one
// function need the same namespace.
//
// # Requests
//
// A claim, a completion, a release and a renewal are one write each; a refused one returns what stands in its way in
// the same reply. Faults add to that, boundedly: a refusal without the item that caused it (older servers, DAX) adds
// a consistent read, and one more claim if the read finds the key free; a result that is too large adds a completion
// without it; a claim that counts attempts and meets the count of an expired life adds a write; a
// TransactionConflictException or ReplicatedWriteConflictException, which the SDK does not retry, is retried up to 4
// times. All this is besides the SDK's own retries.
//
// A claim that asks first (idempotency.ClaimRequest.AskFirst) reads the key before it writes, and writes only if what it
// read lets it have the key.
//
// A guard with idempotency.Options.ReadThenMark claims nothing. It reads the key, and if it is free writes a completion when
// the work is done, on the condition that it is still free: a consistent read and a write.
//
// # Many at a time
//
// The methods for many put up to 25 statements into one BatchExecuteStatement, and up to 100 keys into one BatchGetItem, and
// have up to 10 of these calls in flight. What is refused is read, since DynamoDB returns no item with a refused INSERT.
// This is what 1,000 records cost, in requests, and each of them in write units (W) and read units of consistent reads (R),
// a fifth of the price, for items of up to 1 KB and results of up to 4 KB:
//
//	                                        single         many
//	first run: claim and completion         2,000  2W      80   2W
//	failure, or a claim that never starts   2,000  2W      80   2W
//	known replay: a claim that asks first   1,000  1R      10   1R
//	unknown duplicate: a claim that does    1,000  1W      50   1W+1R
//	not ask of what is completed or held
//	takeover and completion                 2,000  2W      130  3W+1R
//	takeover that asks first, completion    3,000  2W+1R   90   2W+1R
//	first run that asks first               3,000  2W+1R   90   2W+1R
//	read and mark: first run                2,000  1W+1R   50   1W+1R
//	read and mark: replay, failure          1,000  1R      10   1R
//	read and mark: two runs at a time,      4,000  2W+2R   110  2W+3R
//	both together
//	read and mark: first run after an       2,000  1W+1R   1,060  2W+2R
//	expiry that is not deleted yet
//
// Throttled statements, those in conflict with a transaction, and unprocessed keys are sent again up to 5 times, within the
// time that the context leaves, and nothing else with them. A statement is independent of those that it is sent with.
// Requests for the same key go into calls after one another. What a statement cannot say is left to a single call: a
// release that counts attempts, a mark of a key that has expired or run out, a takeover that has to remove more than one attribute, a key that DynamoDB does not take, a
// result that is too large, a key that others took and gave back twice in the meantime.
//
// Where an IAM action for one of the methods is missing, or the server does not know PartiQL, that method makes single calls
// from then on, several at a time, and Options.Logger gets a line that says what it needs. With Options.SingleCalls all of
// them always do so, as they do with a table's ARN, which PartiQL does not take ("DynamoDB API operations supported by
// resource-based policies", DynamoDB Developer Guide). DAX has no PartiQL.
//
// The SDK sends a request again when the reply was lost, after the first one may have been applied. Each transition
// recognises its own write by the owner token and counts it as done.
//
// The SDK's client has a quota of retries, 500 tokens of which a retry takes 14 and a throttled one 5, and which only
// calls without an error fill again (package aws/retry of aws-sdk-go-v2). A refused condition is an error to it: a
// function that replays almost everything does not fill the quota, and after some 35 lost replies its calls fail at the
// first one. Those claims are undecided, and their records come back. Where that happens, give the store a client of
// its own with a larger retry.StandardOptions.RateLimiter.
//
// # Transactions
//
// What guarded work has to write to tables of the same account and Region can be made part of its completion:
//
//	func place(ctx context.Context, m *sqs.Message[Order]) error {
//		return dynamostore.Tx(ctx).Put(types.Put{TableName: aws.String("orders"), Item: m.Body.Item()})
//	}
//
// Tx collects up to 99 puts, updates, deletes and condition checks. When the work has returned without an error, they and
// the completion, with its condition that the claim is still the work's own, go out in one TransactWriteItems: all of it is
// stored, or nothing. A process that is killed, frozen past its lease or cut off from DynamoDB at any point leaves either
// nothing, and the work is done again, or all of it, and the work is never done again. Other effects of the work can repeat,
// as ever.
//
// The request is built once and sent again byte for byte. Its client token is the owner of the claim, which DynamoDB knows
// for ten minutes. A copy that comes later fails the completion's condition, and so cannot store anything twice. What
// becomes of it:
//
//	applied                              done, and replayed from then on
//	claim lost                           idempotency.ErrClaimLost: failed, nothing stored
//	cancelled: a condition, a conflict   *CancelledError, which matches idempotency.ErrTransactionCancelled: failed, nothing
//	or throttling that lasts, a request  stored, and the claim is released, so that it can be tried again at once
//	that cannot be carried out
//	no answer, and a consistent read     idempotency.ErrTransactionUndecided: failed; the claim is not released, and what
//	that tells nothing either            is delivered after its lease finds the work done, or does it again
//
// Conflicts with other transactions and throttling are retried for up to three seconds. That a commit was cancelled is found
// after the work has returned: a condition that is expected to fail is better asked about by the work itself, which can
// return batch.Permanent then. A result that is too large is left out, as it is without a transaction.
//
// A transaction costs two write units for each KB of each of its items, condition checks included, and the completion is
// one of them: where work makes one small write, 5 units in all, instead of 3 for claim, write and completion ("Amazon
// DynamoDB Transactions: How it works", DynamoDB Developer Guide). The requests are as many as without: one completes the
// claim, in a call of its own also where the others of a batch are completed many at a time. Work that does not call Tx, or
// collects nothing, pays nothing. Undecided ones add up to three reads, cancelled ones a release.
//
// Each action needs the IAM action of its own kind on its table, dynamodb:ConditionCheckItem for a condition check ("Using
// IAM with DynamoDB transactions", DynamoDB Developer Guide). Global tables with strong consistency (MRSC) have no
// transactions, and in those with eventual consistency (MREC) a transaction is one in its own Region only.
//
// # Permissions
//
// These IAM actions on the table are needed:
//
//	dynamodb:PutItem      claims
//	dynamodb:UpdateItem   completions, renewals and marks; releases that count attempts; claims that do, or with a sort key
//	dynamodb:DeleteItem   releases
//	dynamodb:GetItem      refusals without the item; claims that ask first; reads before marks
//
// The methods for many need further ones, and those above for what they leave to single calls:
//
//	dynamodb:PartiQLInsert  claims and marks
//	dynamodb:PartiQLUpdate  claims, completions and renewals
//	dynamodb:PartiQLDelete  releases
//	dynamodb:BatchGetItem   claims that ask first; refusals; reads before marks
//
// ("IAM security policies with PartiQL for DynamoDB", DynamoDB Developer Guide.)
//
// CreateTable needs dynamodb:CreateTable, dynamodb:DescribeTable, dynamodb:UpdateTimeToLive and
// dynamodb:DescribeTimeToLive, and is better run where the function's own role is not used.
//
// # Connections
//
// The SDK's HTTP client keeps 10 idle connections per host; calls beyond that open a connection each, TLS handshake
// included. With more than 10 calls at a time, raise it. It has no timeout per request either: a request whose
// connection hangs is waited for until Options.CallTimeout ends the whole call, and is not sent again. With a timeout
// well below that, the SDK sends it again in time:
//
//	httpClient := awshttp.NewBuildableClient().WithTimeout(time.Second).WithTransportOptions(func(t *http.Transport) {
//		t.MaxIdleConnsPerHost = 64
//	})
//
// # Global tables
//
// Conditions are evaluated on the replica that gets the request. In a global table with eventual consistency (MREC)
// two Regions can both claim a key, both do the work, and the last writer wins: use one Region's replica for a key. An
// entry that arrives from another Region is a claim like any other, so that a Region that takes over from a failed one
// holds what had been replicated, and repeats the rest.
//
// A global table with strong consistency (MRSC) has no such window. It refuses concurrent writes with
// ReplicatedWriteConflictException, which is retried. It has no TTL, so that CreateTable cannot make or accept one and
// expired items have to be deleted otherwise, and no transactions
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html).
package dynamostore
