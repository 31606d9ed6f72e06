// Package stream has the rules of shards, which are the same for Kinesis and for DynamoDB streams: what runs beside what,
// where a batch stops, and the one checkpoint that its answer names. Sources say what their records are.
package stream
