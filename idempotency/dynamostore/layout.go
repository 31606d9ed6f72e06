package dynamostore

import (
	"strings"
	"time"
)

// Mayfly makes the Options those of a table that Mayfly.Idempotency (package mayfly_aws for Elixir) uses with its
// defaults: the TTL attribute is expires_at, and the lease is in_progress_until, in seconds.
//
//	store := dynamostore.New(client, "idempotency", dynamostore.Mayfly)
//
// These names and the status values are those of https://github.com/bmalum/mayfly/blob/main/guides/idempotency.md. The
// guide compares in_progress_until with the same time as the TTL attribute, hence the unit; values of 10 digits in a
// table confirm it, and 13 digits are milliseconds, for which LeaseUnit must be set after this. The guide does not name
// the attribute of the result: it is assumed to be data, and to be JSON text. If it is another one, a replay of what
// Mayfly completed is ErrResultNotStored, unless DataAttribute is set after this.
//
// Mayfly has no namespaces: for both to mean the same work, its key must be the namespace, a '#', and the key. It takes
// over what has expired whatever its status, and completes and deletes without knowing owners.
func Mayfly(o *Options) {
	o.ExpiryAttribute = "expires_at"
	o.LeaseAttribute = "in_progress_until"
	o.LeaseUnit = time.Second
}

// sorted reports whether the table has a sort key, which is what holds the keys then.
func (o *Options) sorted() bool { return o.SortKeyAttribute != "" }

// partitionValue returns the partition key's value of the item for key in a table with a sort key.
func (o *Options) partitionValue(key string) string {
	if o.PartitionValue != "" {
		return o.PartitionValue
	}
	namespace, _, _ := strings.Cut(key, "#")
	return partitionPrefix + namespace
}

// leaseUnits returns epoch milliseconds in the unit of the lease attribute, rounded up. A lease, which is in whole units, is
// before a moment if and only if it is before that moment rounded up, so that conditions can compare whole units.
func (o *Options) leaseUnits(milliseconds int64) int64 {
	unit := o.LeaseUnit.Milliseconds()
	units := milliseconds / unit
	if milliseconds%unit > 0 {
		units++
	}
	return units
}

// storedLease returns a lease as it can be read again.
func (o *Options) storedLease(lease time.Time) time.Time {
	return time.UnixMilli(o.leaseUnits(lease.UnixMilli()) * o.LeaseUnit.Milliseconds()).UTC()
}
