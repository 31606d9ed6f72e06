package watermark

import (
	"context"
	"time"
)

// Store keeps one position for each key, and who may move it. Each of its methods is one conditional write. It is safe
// for concurrent use. MemoryStore is one, and dynamostore.NewWatermarks makes one in DynamoDB. Package watermarktest has a
// conformance suite that every Store must pass.
//
// Time is part of every request; a Store compares with that and with nothing else. Leases count in whole milliseconds,
// expiries in whole seconds, both rounded down. What has expired counts as absent, whether or not it was deleted, unless
// it is claimed under a lease that has not run out: no expiry ends a live claim.
//
// A request that is wrong, as its Validate says, is an error and changes nothing. An error that is none of package
// idempotency's leaves it open whether the write happened, since requests and replies get lost; a client may also send
// a request again on its own, after the first one was applied.
type Store interface {
	// Claim takes the shard for r.Owner until r.Lease, and returns the position that is reached, the zero Position if
	// none is. It takes over from an owner whose Lease plus r.Skew is before r.Now, and keeps the position then.
	//
	// It returns the *idempotency.InProgressError of r.InProgress if another owner has the shard, and has changed nothing
	// then. A claim that finds r.Owner's own is granted: the request was sent twice. One that finds that r.Owner has given
	// the shard back returns idempotency.ErrClaimLost: it was under way for so long that the work is over.
	Claim(ctx context.Context, r ClaimRequest) (Position, error)

	// Advance moves the position to r.To if r.Owner has the shard, and gives the shard back where r.Release is set, in
	// the same write. A position that is further on already stays as it is, and the request then changes nothing unless
	// it gives the shard back. The lease need not be good any more, as long as nobody took over.
	//
	// It returns nil as well if r.Owner has given the shard back at r.To or further on: the request was sent twice. It
	// returns idempotency.ErrClaimLost, and has changed nothing, if the shard is someone else's, if it was rewound since
	// the claim, if the position has expired, or if r.Owner gave it back before r.To.
	Advance(ctx context.Context, r AdvanceRequest) error

	// Rewind sets the position to r.To, which may lie before or behind the present one; the zero Position means that
	// nothing is done. It takes the shard from whoever has it, so that their Advance is refused. A Rewind that is sent
	// twice is done twice.
	Rewind(ctx context.Context, r RewindRequest) error
}

// ClaimRequest asks for a shard.
type ClaimRequest struct {
	Key   string // as Key makes it
	Owner string // fresh and unguessable for every request

	Now time.Time
	// Lease is when the claim ends, later than Now.
	Lease time.Time
	// Skew is how far the clocks of two owners may differ, 0 or more.
	Skew time.Duration
	// Expiry is when the position may be forgotten, later than Lease plus Skew. A position must live until no record at or
	// before it can come again, which is as long as the stream's retention.
	Expiry time.Time
}

// AdvanceRequest moves the position on.
type AdvanceRequest struct {
	Key   string
	Owner string // that of the claim
	Now   time.Time

	// To is the last record that is done. The zero Position moves nothing. It costs least where a batch had nothing to do:
	// some stores need a second write to give back a shard whose position is further on than To.
	To Position
	// Expiry is when the position may be forgotten, later than Now.
	Expiry time.Time
	// Release gives the shard back.
	Release bool
}

// RewindRequest sets the position by hand.
type RewindRequest struct {
	Key    string
	Now    time.Time
	To     Position
	Expiry time.Time // when the position may be forgotten, later than Now
}
