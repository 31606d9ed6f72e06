package idempotency

import "context"

// BulkStore is implemented by stores that make many transitions in few requests. Guards and sources find it by type
// assertion, so a store that wraps another has to forward it: see Bulk.
//
// Each method does for each of its requests what the Store's method for one does, by the same rules, and independently:
// one that is refused or fails does nothing to the others. The answers are in the order of the requests, one for each.
// Two requests of one call may name the same key; then the answers are as if one had come after the other. A call that
// cannot be made at all has the same error in every answer. No method keeps or changes the slice that it is given.
type BulkStore interface {
	Store

	// BulkSizes returns how many requests a call takes best. It always returns the same.
	BulkSizes() BulkSizes

	ClaimAll(ctx context.Context, requests []ClaimRequest) []ClaimAnswer
	CompleteAll(ctx context.Context, requests []CompleteRequest) []error
	ReleaseAll(ctx context.Context, requests []ReleaseRequest) []error
	RenewAll(ctx context.Context, requests []RenewRequest) []error
}

// BulkSizes says how many requests callers should put into one call of a BulkStore's methods, if they have that many
// at hand. More are taken too. Less than two means that calls for many gain nothing, and are not made.
type BulkSizes struct {
	Claims int // of ClaimAll
	Settle int // of CompleteAll and ReleaseAll
}

// ClaimAnswer is what Claim would return.
type ClaimAnswer struct {
	ClaimResult
	Err error
}

// Bulk returns the store as a BulkStore, if it is one that gains from it.
func Bulk(store Store) (BulkStore, bool) {
	b, ok := store.(BulkStore)
	if !ok {
		return nil, false
	}
	sizes := b.BulkSizes()
	return b, sizes.Claims > 1 || sizes.Settle > 1
}
