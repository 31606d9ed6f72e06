package dynamostore

import (
	"fmt"
	"log/slog"
	"reflect"
	"time"
)

// Options change where a Store keeps what, and how much it does at a time. The zero value of a field means its default.
type Options struct {
	// KeyAttribute is the table's partition key, of type S. Default "id".
	KeyAttribute string
	// SortKeyAttribute is the table's sort key, of type S. Default none. With it the key is the sort key's value, and
	// the partition key's value is PartitionValue.
	SortKeyAttribute string
	// PartitionValue is the partition key's value where SortKeyAttribute is set, the same for all keys. By default it is
	// "idempotency#" and the namespace of the key, which is what stands before the key's first '#'.
	PartitionValue string

	// StatusAttribute holds INPROGRESS or COMPLETED. Default "status".
	StatusAttribute string
	// ExpiryAttribute holds when the entry is forgotten, in epoch seconds. It should be the table's TTL attribute.
	// Default "expiration".
	ExpiryAttribute string
	// LeaseAttribute holds the end of a claim's lease, since the epoch, in LeaseUnit. Default "in_progress_expiration".
	LeaseAttribute string
	// LeaseUnit is the unit of LeaseAttribute: time.Millisecond, or time.Second for tables of tools that keep seconds. In
	// seconds a lease is rounded up, so that a claim is held for up to a second longer and never ends early. All who share
	// a table need the same unit: a lease in the other one ends decades too early or never. Default time.Millisecond.
	LeaseUnit time.Duration
	// DataAttribute holds the result. Default "data".
	DataAttribute string
	// NativeData keeps results as attribute values of their own types, a JSON object as a map for example, where the
	// default is JSON text in a string. What is read is understood in both forms, whatever this says. The package's
	// comment says what native values cannot keep. Default false.
	NativeData bool
	// FingerprintAttribute holds the payload's fingerprint. Default "validation".
	FingerprintAttribute string
	// OwnerAttribute holds the token of the claim. Default "owner".
	OwnerAttribute string
	// AttemptsAttribute counts the claims, where they are counted. Default "attempts".
	AttemptsAttribute string

	// CallTimeout is how long one call may take, the SDK's retries included. The SDK has no timeout of its own, so that a
	// connection that hangs would hold its record until the end of the invocation. Default 3s.
	CallTimeout time.Duration

	// MaxInFlight bounds how many calls the Store makes at a time, over all the invocations of a process that share it.
	// A call beyond it waits until another has ended or its context has. Default 64.
	MaxInFlight int

	// SingleCalls makes one call for each request, where one for up to 25 would do: for clients that have no PartiQL, as
	// DAX has none. Default false.
	SingleCalls bool

	// Logger gets a line when calls for many are given up, because an IAM action is missing for one. Default slog.Default().
	Logger *slog.Logger
}

const (
	partitionPrefix    = "idempotency#" // before the namespace, as Powertools has it before a function's name
	defaultLeaseUnit   = time.Millisecond
	defaultMaxInFlight = 64
	defaultCallTimeout = 3 * time.Second

	// Limits of DynamoDB, "Service, account, and table quotas" in the DynamoDB Developer Guide.
	maxAttributeName  = 255 // bytes; a key's, and that of any attribute an index or TTL uses
	maxPartitionValue = 2048
	maxItem           = 400 * 1024
)

// attribute is one attribute's name, with the option that sets it.
type attribute struct {
	option       string
	name         *string
	defaultValue string
}

func (o *Options) attributes() []attribute {
	return []attribute{
		{"KeyAttribute", &o.KeyAttribute, "id"},
		{"SortKeyAttribute", &o.SortKeyAttribute, ""},
		{"StatusAttribute", &o.StatusAttribute, "status"},
		{"ExpiryAttribute", &o.ExpiryAttribute, "expiration"},
		{"LeaseAttribute", &o.LeaseAttribute, "in_progress_expiration"},
		{"DataAttribute", &o.DataAttribute, "data"},
		{"FingerprintAttribute", &o.FingerprintAttribute, "validation"},
		{"OwnerAttribute", &o.OwnerAttribute, "owner"},
		{"AttemptsAttribute", &o.AttemptsAttribute, "attempts"},
	}
}

// resolve applies optFns and fills in the defaults. The error, if any, is the first option that is wrong.
func resolve(optFns []func(*Options)) (Options, error) {
	var o Options
	for _, f := range optFns {
		if f != nil {
			f(&o)
		}
	}
	for _, a := range o.attributes() {
		if *a.name == "" {
			*a.name = a.defaultValue
		}
	}
	leaseUnit := o.LeaseUnit
	if leaseUnit != time.Second {
		o.LeaseUnit = defaultLeaseUnit
	}
	callTimeout := o.CallTimeout
	if callTimeout <= 0 {
		o.CallTimeout = defaultCallTimeout
	}
	maxInFlight := o.MaxInFlight
	if maxInFlight <= 0 {
		o.MaxInFlight = defaultMaxInFlight
	}

	taken := make(map[string]string)
	for _, a := range o.attributes() {
		if len(*a.name) > maxAttributeName {
			return o, fmt.Errorf("dynamostore: Options.%s is %q, %d bytes; the limit is %d",
				a.option, *a.name, len(*a.name), maxAttributeName)
		}
		if other, ok := taken[*a.name]; ok && *a.name != "" {
			return o, fmt.Errorf("dynamostore: Options.%s is %q, as Options.%s is; every attribute needs a name of its own",
				a.option, *a.name, other)
		}
		taken[*a.name] = a.option
	}
	switch {
	case !o.sorted() && o.PartitionValue != "":
		return o, fmt.Errorf("dynamostore: Options.PartitionValue is %q, but Options.SortKeyAttribute is empty; "+
			"without a sort key the partition key's value is the key", o.PartitionValue)
	case len(o.PartitionValue) > maxPartitionValue:
		return o, fmt.Errorf("dynamostore: Options.PartitionValue has %d bytes; the limit is %d",
			len(o.PartitionValue), maxPartitionValue)
	case leaseUnit != 0 && leaseUnit != time.Millisecond && leaseUnit != time.Second:
		return o, fmt.Errorf("dynamostore: Options.LeaseUnit is %v; want %v, %v, or 0 for %v",
			leaseUnit, time.Millisecond, time.Second, defaultLeaseUnit)
	case callTimeout < 0:
		return o, fmt.Errorf("dynamostore: Options.CallTimeout is %v; it must be more than 0, or 0 for %v",
			callTimeout, defaultCallTimeout)
	case maxInFlight < 0:
		return o, fmt.Errorf("dynamostore: Options.MaxInFlight is %d; it must be at least 1, or 0 for %d",
			maxInFlight, defaultMaxInFlight)
	}
	return o, nil
}

// isNil reports whether client is nil or a nil pointer in an interface, which would panic in the first call only.
func isNil(client any) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
