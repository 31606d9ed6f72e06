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
//	id                      S  the key; with a sort key, a static value, and the key is the sort key
//	status                  S  INPROGRESS or COMPLETED
//	expiration              N  epoch seconds, the TTL attribute
//	in_progress_expiration  N  epoch milliseconds: the end of the lease; 0: the claim was released
//	data                    S  the result; absent: none is stored
//	validation              S  the payload's fingerprint; absent: none
//	owner                   S  the token of the claim
//	attempts                N  only where attempts are counted
//
// A completed item has no in_progress_expiration and no attempts. The names are those of Powertools for AWS Lambda,
// so that a table can be shared with it. On a table that is shared with a tool that updates and deletes without
// conditions, the guarantee is that tool's: it can overwrite and delete this package's claims. An item whose status
// is neither of the two, or whose attributes have other types, is neither claimed nor replayed: it is an error that
// names what was found. One of those is a result that Powertools for TypeScript stored as a map.
//
// With Options.SortKeyAttribute all keys share one partition, which DynamoDB limits to 1,000 write units a second
// ("Best practices for designing and using partition keys effectively", DynamoDB Developer Guide).
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
// The SDK sends a request again when the reply was lost, after the first one may have been applied. Each transition
// recognises its own write by the owner token and counts it as done.
//
// The SDK's client has a quota of retries, 500 tokens of which a retry takes 14 and a throttled one 5, and which only
// calls without an error fill again (package aws/retry of aws-sdk-go-v2). A refused condition is an error to it: a
// function that replays almost everything does not fill the quota, and after some 35 lost replies its calls fail at the
// first one. Those claims are undecided, and their records come back. Where that happens, give the store a client of
// its own with a larger retry.StandardOptions.RateLimiter.
//
// # Permissions
//
// These IAM actions on the table are needed and no others:
//
//	dynamodb:PutItem      claims
//	dynamodb:UpdateItem   completions and renewals; releases that count attempts; claims that do, or with a sort key
//	dynamodb:DeleteItem   releases
//	dynamodb:GetItem      refusals without the item
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
// two Regions can both claim a key, and the last writer wins: use one Region's replica for a key. A global table with
// strong consistency (MRSC) refuses concurrent writes with ReplicatedWriteConflictException, which is retried, and
// has no TTL.
package dynamostore
