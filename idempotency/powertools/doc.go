// Package powertools makes the keys that Powertools for AWS Lambda makes of the same payload, in TypeScript, Python or Java,
// so that a function in Go and one in another language can share a table, and a consumer can be moved to Go without doing
// anything twice.
//
// Powertools stores a record under "<prefix>#<hash>": the prefix is the function's name, and the hash is made of what a
// JMESPath expression selects from the payload. A Guard stores "<namespace>#<key>". So a Guard whose namespace is that prefix,
// see Language.Namespace, and whose keys are those of Keys, has the same rows. What selects the value is up to the caller:
// Keys takes its JSON. Here it is the message's id, as with eventKeyJmesPath: 'messageId':
//
//	keys, err := powertools.NewKeys(powertools.TypeScript)
//	if err != nil {
//		return err
//	}
//	guard, err := idempotency.New("orders-consumer", store) // the name of the Lambda function in TypeScript
//	if err != nil {
//		return err
//	}
//	h, err := sqs.NewHandler(place, func(o *sqs.Options) {
//		o.Idempotency = guard
//		o.Key = func(v sqs.View) (string, error) {
//			id, err := json.Marshal(v.ID())
//			if err != nil {
//				return "", err
//			}
//			return keys.Key(id)
//		}
//	})
//
// Where the key is the whole body of a message, its JSON parsed, Keys.Key is an Options.PayloadKey of the sources, and
// Keys.Fingerprint an Options.PayloadFingerprint. Where it is a member of it, decode the body with that member as a
// json.RawMessage, which keeps it as it is written.
//
// The store is one of package dynamostore, whose attributes have the names of Powertools unless options say otherwise. With a
// sort key, set PartitionValue to the staticPkValue (static_pk_value) of Powertools, "idempotency#" and the name of the Lambda
// function by default. The Guard's option HashKeys, which changes what is stored, has to be off.
//
// # What is the same
//
// The key depends on the language: they escape strings, write numbers and order members each in its own way, and some of
// that has to be known when a value is made:
//
//   - TypeScript sorts the members of objects by their lower case, so {"a":1,"A":2} and {"A":2,"a":1} are two keys. It drops
//     members named __proto__. Integers beyond 2^53 are rounded, as JSON.parse rounds them.
//   - Python tells 1 from 1.0, and keeps integers exact. Give it the numbers as they are written. A payload that is no JSON
//     but a data class or a model is what Powertools makes of it, its dict.
//   - Java sorts nothing, and tells 1 from 1.0. Give it the members in the order in which Jackson has them: that of the JSON
//     where it is parsed from text, as by powertools_json; alphabetical, and without those that are null, where it is made of
//     the events' classes or your own. Before Java 19 some doubles are written with a digit more than since: one in 400 of 50,000
//     random ones, none of 41,000 with few digits. Such keys are not found; let no double be part of a key.
//
// The hash is MD5 by default, see Options.Hash. What is stored as validation, for payloads that have to stay the same under a
// key, is the hash of what payloadValidationJmesPath selects: Keys.Fingerprint. Both sides should validate, or none. Powertools
// that validates refuses every row that has no validation; a Guard compares fingerprints only where both have one.
//
// Results differ too. Powertools for TypeScript stores them as attribute values of their own types, Python and Java as JSON in
// a string. A store reads both; dynamostore.Options.NativeData says which it writes. It has to be set for TypeScript, which
// otherwise gets the text, and must not be set for Python and Java. A string that TypeScript returned and that is itself JSON is
// replayed in Go as that JSON. A result that is not JSON, as Java stores of a method that returns String, is replayed as a
// string. Records of batches store no result: TypeScript replays undefined, Python None; Java has an error for any return
// type but String, so such a record fails instead of being replayed.
//
// # In progress
//
// Each side refuses a key under the other's live claim, and takes over when its lease has ended: Powertools at once, a Guard
// after its Skew. The lease of Powertools is the end of the invocation if it is given the Lambda context (registerLambdaContext,
// register_lambda_context); a claim without one is held until it expires, an hour by default, to both sides. So give it the
// context. What a Guard releases is free to Powertools.
//
// # What Powertools can do to a claim
//
// It completes with an update and releases with a delete, neither of which asks whose claim it is. As long as its invocations
// end before their leases do, as Lambda sees to by its timeout, that changes nothing. An invocation that was frozen and thawed,
// or a clock that is wrong, can write after a Guard has taken over. Then
//
//   - its completion completes the claim of the other: its result is what is replayed. The Guard's own completion after it
//     takes that for its own and succeeds, and a release after it fails with ErrAlreadyCompleted: the record of a handler that
//     has failed is reported as failed, and replayed when it comes back.
//   - its failure deletes the claim of the other, or its completion: the next delivery runs, beside the claim's owner or
//     again. The owner's completion fails with ErrClaimLost.
//   - its completion replaces the result of a completion.
//
// This is the guarantee on a table that is shared: that of the weaker writer. A Guard never does the like to a claim of
// Powertools that it has not taken over.
//
// # Moving a consumer to Go
//
// Nothing is done twice if the Go function finds the rows of the old one, and these live as long as records can come back.
//
//  1. Note what the old function uses: its name or key prefix; the expression of the key; the hash function; the expression of
//     the validation; the table, its attributes and its sort key. Pass the same to Namespace, Options, Keys and dynamostore.
//  2. Raise expiresAfterSeconds (expires_after_seconds, withExpiration) of the old function to the longest time that the
//     source can deliver a record again, for SQS the queue's retention, and leave it running for as long as the rows with the
//     former expiry matter. The default of one hour is less than a queue keeps a message. Give it the Lambda context.
//  3. Compare before you switch: compute the keys of payloads that the old function has processed, and look them up in the
//     table as "<namespace>#<key>". A test with a few recorded events does it for good. Not one may be missing.
//  4. Switch by moving the event source mapping: disable the old one, wait until its invocations have ended, which takes no
//     longer than the function's timeout, and enable the new one. What the old one has not finished comes back and runs; what it
//     has finished is replayed. Both mappings at once are safe as well, but for what the section before this says.
//  5. Keep namespace and keys for as long as rows of the old function live, and longer if they serve. Whoever changes one of
//     them later, or the language of Keys, makes records in between run again.
//
// The way back is the same, with the two changed about. For TypeScript it needs NativeData if anyone uses the results.
// Records that Powertools ran without a key have no row. A Guard fails them with ErrKeyMissing, unless
// idempotency.Options.MissingKey says that they run unprotected, as they did; see Options.HashEmpty for those of TypeScript.
//
//snippet:go var store idempotency.Store; var place func(context.Context, *sqs.Message[string]) error
package powertools
