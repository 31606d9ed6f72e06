// Package redisstore keeps idempotency claims on a Redis or Valkey server.
//
//	client := redis.NewClient(&redis.Options{Addr: address, ContextTimeoutEnabled: true})
//	store := redisstore.New(goredisclient.New(client))
//
// Packages goredisclient and rueidisclient take a client of go-redis or of rueidis; Client is small enough to write for
// another one. This package imports none of them.
//
// # What the guarantee is worth here
//
// Every transition is one script, which the server runs alone and completely. So of any number of claims one wins, on one
// server that keeps what it has acknowledged. Redis and Valkey keep it only as far as they are set up to:
//
//   - Eviction. With any maxmemory-policy but noeviction the server deletes keys to make room, live claims and completions
//     among them, and says nothing. Records then run again, or beside themselves. Only noeviction is safe, and it is not
//     the default everywhere: Amazon ElastiCache's is volatile-lru ("Evictions" in the AWS whitepaper "Database Caching
//     Strategies Using Redis"). With it a full server refuses new claims
//     (idempotency.ErrStoreFull), and still completes, releases, renews and takes over those that it has; that can take a
//     little more memory than maxmemory. Work that began without a claim (idempotency.Options.ReadThenMark) is then done and
//     not recorded, since the read before it does not tell.
//   - Persistence. Without an append-only file a restart forgets everything since the last snapshot, or everything. With
//     appendfsync everysec, the default, a crash of the machine loses the last second or two of it; with always, nothing
//     that was answered.
//   - Replication is asynchronous. A failover loses what the old primary had acknowledged and not sent yet. What was
//     claimed or completed in these moments can be claimed again. WAIT and min-replicas-to-write make the window smaller
//     and do not close it. A primary that is cut off from its replicas takes claims until it notices, and they are lost.
//   - Reads and writes go to the primary. Scripts that write fail on a replica.
//   - Active-active databases of several regions merge writes later. Two regions can both claim a key: let one own it.
//   - FLUSHALL, FLUSHDB and DEL by hand delete claims.
//
// In each of these cases a record can run twice; none loses one. Where that is not good enough, use package dynamostore,
// whose writes are on disk in several places before they are acknowledged, or Amazon MemoryDB, whose writes are in a log
// that a failover reads.
//
// # Keys
//
// A key is a hash under Options.KeyPrefix and the key, namespace included. Its fields are
//
//	status       INPROGRESS or COMPLETED
//	owner        the token of the claim
//	lease        epoch milliseconds: the end of a claim's lease; 0: the claim was released
//	expiry       epoch seconds
//	fingerprint  the payload's; absent: none
//	data         the result; absent: none is stored
//	attempts     only where attempts are counted, and until the completion
//
// A key that holds anything else is neither claimed nor replayed nor changed: it is an error that names what was found.
// The data that Powertools for AWS Lambda keeps in Redis is of another form, and the two cannot share keys.
//
// Time comes from the requests. The server's clock decides only when it may delete a key: a minute after the entry has
// expired, and no earlier than a minute after a lease and its skew have ended. That is told as a distance from the caller's
// now, so a server whose clock is wrong deletes nothing early. One whose clock is set forward by more than a minute
// while an entry lives does, and so does a replica that is ahead by more than that and takes over.
//
// # Requests
//
// A transition, or the read before a mark, is one EVALSHA with one key, so that it works on a cluster. A server that does not know a script, since it
// is new or was restarted, gets it with an EVAL, one round trip more. Many transitions go in pipelines of a hundred where
// the client is a Pipeliner.
//
// Clients send a command again when the reply was lost. Each script recognises its own write by the owner token. A call
// ends after Options.CallTimeout, the client's tries included, if the client ends its reads with their context: rueidis
// does, go-redis where ContextTimeoutEnabled is set.
//
// Besides what the client itself sends, the user needs these commands on keys with the prefix:
//
//	ACL SETUSER orders on >password ~idempotency:* +evalsha +eval +hgetall +hmget +hset +hdel +del +pexpire +exists +type
//
// The scripts use nothing that is newer than Redis 5. They are tested on Redis 7.0.
package redisstore
