package jmespath

import (
	"fmt"

	"github.com/oncekit/oncekit/idempotency"
)

// The default and the limit of Options.MaxInflated, in bytes.
const (
	DefaultMaxInflated = 16 << 20
	InflatedLimit      = 1 << 30
)

// Options are the options of an Expression. The zero value is a good default.
type Options struct {
	// Hash is the hash function of fingerprints. The zero value is idempotency.SHA256.
	Hash idempotency.Hash

	// MaxInflated is how many bytes powertools_base64_gzip may make of one text, so that a small payload does not fill the
	// memory. A text with more is an error. 0 means DefaultMaxInflated, 16 MiB; the limit is InflatedLimit, 1 GiB.
	MaxInflated int
}

func (o *Options) validate() error {
	if o.MaxInflated < 0 || o.MaxInflated > InflatedLimit {
		return fmt.Errorf("Options.MaxInflated is %d, want 0 (for %d) to %d", o.MaxInflated, DefaultMaxInflated, InflatedLimit)
	}
	if _, err := o.Hash.PayloadHash([]byte("null")); err != nil {
		return fmt.Errorf("Options.Hash: %w", err)
	}
	if o.MaxInflated == 0 {
		o.MaxInflated = DefaultMaxInflated
	}
	return nil
}
