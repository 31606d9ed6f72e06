// Package storetest is the conformance suite for implementations of idempotency.Store.
//
// A store's own test calls Test with a function that makes a store, which is all it takes:
//
//	func TestConformance(t *testing.T) {
//		storetest.Test(t, func(t testing.TB) idempotency.Store {
//			return mystore.New(connect(t), "table")
//		})
//	}
//
// Time is part of every request, so the suite waits for nothing: it asks what a store does one millisecond before a lease
// ends and one after by saying so. Keys and owners are random, so stores may share a table that is never emptied. All
// entries live for minutes of real time at least, and none of their times is in the past: a store that lets its server
// delete what has expired passes.
//
// The subtests are named by the rules that idempotency.Store documents:
//
//	1-winner        A claim is one conditional write: of any number of claimants one wins.
//	2-owner         Complete, release and renew require that the key is in progress under the caller's own token.
//	                What is refused changes nothing.
//	3-own-write     A request that arrives twice has the same answer twice.
//	4-lease         A claim is held until its lease and the skew have passed, to the millisecond.
//	5-expiry        A completion is held until its expiry, to the second, deleted or not. An expiry ends no live claim.
//	                A new life of a key starts without what an earlier one left.
//	11-fingerprint  The fingerprint of the claim stays with the entry, and is there to be compared.
//	13-data         A result comes back byte for byte, or the store says that it has not kept it.
//	15-refused      A refused claim returns the entry that stands in its way.
//	18-full         A full store refuses new keys, and forgets nothing that is still good.
//	attempts        Attempts are counted where the caller asks for it.
//	planted         Entries of other tools are read as those tools mean them.
//	keys            Any key is a key of its own.
//	context         A context that is done ends a call.
//	model           A random sequence of requests has the answers that a model of the rules gives.
//
// All of them but the model run a second time with claims that ask first, whose answers are the same. For an
// idempotency.BulkStore they run twice more, with each request as a call for many: alone in it, and, the model too, among
// others and a twin. Further checks are about many requests:
//
//	bulk            The answers are in order, one for each request, and none has to do with another's. A call may have
//	                more requests than BulkSizes says, two for one key, or none. Two callers of the same keys have one
//	                winner for each.
//	mark            What is free is found to be, and marked by one conditional write. What is held is found as it is, refuses
//	                the mark, and stays as it is.
//
// Two things need more than a Store has, and are tested where the store that is handed to Test has it: a Planter can
// write entries of other tools, a Limiter can make a store with room for few entries. A test wraps its store to add them:
//
//	type harness struct{ *mystore.Store }
//
//	func (h harness) Plant(t testing.TB, key string, e idempotency.Entry) { ... }
//
// A ValueKeeper has results come back as JSON of the same value instead of the same bytes.
//
// Bulk makes a BulkStore of any store, for tests of what uses one.
//
// TestGuard does the same for what stands between a store and the work, as idempotency.Do does.
//
// Both suites are proved by stores and guards that are broken on purpose, one for each rule that can be broken: a test of
// this package sees to it that they fail, each in the check that is there for it.
package storetest
