package redisstore

import (
	"fmt"
	"time"
)

// Options configures a Store. Its zero value is the default.
type Options struct {
	// KeyPrefix stands before every key, so that a server can be shared with other data. It is part of the key: with
	// another prefix everything runs once more. Default "idempotency:".
	//
	// Braces in it decide the slot of a key on a cluster, as they do in the key itself ("Hash tags", Redis cluster
	// specification). With braces in the prefix, all keys are on one shard.
	KeyPrefix string

	// CallTimeout is how long one call may take, the client's retries included, so that a connection that hangs does not
	// hold its record until the end of the invocation. See the package's comment for what the client must do for that.
	// Default 3s.
	CallTimeout time.Duration
}

const (
	defaultKeyPrefix   = "idempotency:"
	defaultCallTimeout = 3 * time.Second
)

// resolve applies optFns and fills in the defaults. The error, if any, is the first option that is wrong.
func resolve(optFns []func(*Options)) (Options, error) {
	var o Options
	for _, f := range optFns {
		if f != nil {
			f(&o)
		}
	}
	if o.KeyPrefix == "" {
		o.KeyPrefix = defaultKeyPrefix
	}
	if o.CallTimeout < 0 {
		return o, fmt.Errorf("redisstore: Options.CallTimeout is %v, want more than 0, or 0 for %v",
			o.CallTimeout, defaultCallTimeout)
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaultCallTimeout
	}
	return o, nil
}
