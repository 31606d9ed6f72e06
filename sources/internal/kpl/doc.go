// Package kpl reads and writes the aggregated records of the Kinesis Producer Library: one Kinesis record that holds many
// user records.
//
// An aggregated record is
//
//	F3 89 9A C2 | message | MD5 of the message, 16 bytes
//
// where the message is this one of protocol buffers, version 2:
//
//	message AggregatedRecord {
//	  repeated string partition_key_table     = 1;
//	  repeated string explicit_hash_key_table = 2;
//	  repeated Record records                 = 3;
//	}
//	message Record {
//	  required uint64 partition_key_index     = 1;
//	  optional uint64 explicit_hash_key_index = 2;
//	  required bytes  data                    = 3;
//	  repeated Tag    tags                    = 4;
//	}
//
// Indices count from 0. The format is described at
// https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md.
//
// Anyone who may put records into a stream may put any bytes between magic and digest. The parser takes memory for what
// is there, never for a length or a number that is declared: at most ten times the bytes of the aggregate, in three
// allocations.
package kpl
