// Package shardtest is what kinesistest and dynamodbstreamtest share: shards in memory, and a poller that reads them as
// Lambda's event source mapping does. The kits say what a record is, how it gets its sequence number and which shard it
// goes to; what becomes of it afterwards is decided here.
//
// The rules, with their sources, are those of section "Processing" in the kits' documentation. Where AWS documents
// nothing, the rule is the one under which a faulty handler loses records and a test notices, or there is an option.
package shardtest
