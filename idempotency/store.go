package idempotency

import (
	"context"
	"time"
)

// Status is the state of a key that a store holds. A key that is not held is absent.
type Status uint8

const (
	// Absent: nothing is held, or what is held has expired.
	Absent Status = iota
	// InProgress: one owner holds a claim on the key until its lease ends.
	InProgress
	// Completed: the work is done and must not be done again until the entry expires.
	Completed
)

// String returns the name of the status as it stands in a store.
func (s Status) String() string {
	switch s {
	case InProgress:
		return "INPROGRESS"
	case Completed:
		return "COMPLETED"
	default:
		return "ABSENT"
	}
}

// Entry is what a store holds for one key.
type Entry struct {
	Status Status
	// Owner is the token of the claim that wrote the entry. It is empty in entries of tools that know no owners.
	Owner string
	// Fingerprint is that of the payload the key was claimed with, or empty.
	Fingerprint string
	// Lease is the end of an InProgress entry's lease, in whole milliseconds. Zero means that the entry has none:
	// it is another tool's, and is held until its Expiry.
	Lease time.Time
	// Expiry is when the entry counts as absent, in whole seconds.
	Expiry time.Time
	// Data is the stored result, nil where none is stored: JSON in UTF-8, which comes back byte for byte. A stored JSON
	// null is the four bytes "null".
	Data []byte
	// Attempts is how often a handler was started under this key since it was last completed. It is zero unless
	// attempts are counted. Whether the count outlives the expiry of the entry is up to the store.
	Attempts int
}

// ClaimRequest asks for a key. Owner is fresh for every request, so a store can recognise its own write.
type ClaimRequest struct {
	Key         string // as stored: the namespace is part of it
	Owner       string
	Fingerprint string // empty: none

	// Now is the caller's clock. Stores compare with it and with nothing else.
	Now time.Time
	// Lease is when the claim ends, later than Now.
	Lease time.Time
	// Expiry is when the entry may be forgotten, later than Lease plus Skew, so that no expiry ends a live claim.
	Expiry time.Time
	// Skew is how far the clocks of two claimants may differ.
	Skew time.Duration
	// CountAttempts asks the store to count this claim in Entry.Attempts.
	CountAttempts bool
	// AskFirst says that the key is probably Completed. A store for which reading is cheaper than a refused write then
	// reads first, and claims only what it does not find Completed. The answer is the same either way.
	AskFirst bool
}

// ClaimResult is the answer to a ClaimRequest.
type ClaimResult struct {
	// Claimed is whether the key is the caller's now.
	Claimed bool
	// TookOver is whether a claimed key was InProgress before, under a lease that had run out. An entry that was released,
	// and is kept for its count of attempts, was not.
	TookOver bool
	// Entry is the caller's own entry where Claimed is true, and otherwise the one that stands in its way.
	Entry Entry
}

// CompleteRequest turns the owner's claim into a completion.
type CompleteRequest struct {
	Key    string
	Owner  string
	Now    time.Time
	Expiry time.Time // when the completion is forgotten
	Data   []byte    // the result to replay, nil: none
}

// ReleaseRequest gives the owner's claim back.
type ReleaseRequest struct {
	Key   string
	Owner string
	Now   time.Time
	// CountAttempts says that the claim counted attempts. The entry is then kept, without an owner and with its lease
	// set to the epoch, so that it is free and the count lives on until the entry expires.
	CountAttempts bool
	// Unstarted says that the handler never ran under this claim: a counted attempt is taken back.
	Unstarted bool
}

// RenewRequest exchanges the owner's claim for one with another owner token and a later lease.
type RenewRequest struct {
	Key      string
	Owner    string // the present one
	NewOwner string // fresh
	Now      time.Time
	Lease    time.Time
	Expiry   time.Time
}

// Store keeps claims and completions. It is a set of transitions between the states of a key, not a place to read and
// write entries, since each transition must be one conditional write to be safe:
//
//	absent ----Claim----> INPROGRESS ----Complete----> COMPLETED ----expiry----> absent
//	   ^                    |     | ^
//	   +------Release-------+     +-+ Claim by another owner after the lease, Renew by its own
//
// A store is safe for concurrent use. Package storetest has a conformance suite that every store must pass.
//
// A method that returns an error which is none of this package's leaves it open whether the transition happened:
// requests and replies get lost. The caller treats it so. No method retries for longer than ctx lives.
type Store interface {
	// Claim makes the key InProgress for r.Owner if it is free, and says who holds it if it is not.
	//
	// A key is free if nothing is held; if a Completed entry's Expiry is before r.Now, both in whole seconds, whether
	// or not the entry was deleted yet; if an InProgress entry's Lease plus r.Skew is before r.Now, both in whole
	// milliseconds; or if an InProgress entry without Lease has expired. An InProgress entry with a Lease is never free
	// before that, whatever its Expiry. Claiming removes what an earlier life of the key left: its data, its fingerprint.
	//
	// A refused claim that finds r.Owner's own claim is Claimed: the request was sent twice. One that finds r.Owner's own
	// completion is refused: it was under way for so long that the work is done. A refused claim changes nothing. A store
	// that has no room returns ErrStoreFull, and forgets no live claim and no unexpired completion to make some. A store
	// that can't work until someone changes its configuration returns ErrStoreUnusable.
	Claim(ctx context.Context, r ClaimRequest) (ClaimResult, error)

	// Complete makes the key Completed if it is InProgress under r.Owner and has not expired. It keeps the fingerprint.
	//
	// It returns nil as well if the key is Completed under r.Owner already, and changes nothing then: the request was sent
	// twice. It returns ErrClaimLost, and has changed nothing, if the entry is gone, has expired, or is someone else's. It
	// returns ErrResultNotStored if the completion is stored, but r.Data is too large to be stored with it.
	Complete(ctx context.Context, r CompleteRequest) error

	// Release makes the key free again if it is InProgress under r.Owner.
	//
	// It returns nil if the key is absent or already released: the request was sent twice. It returns
	// ErrAlreadyCompleted if the key is Completed under r.Owner, and ErrClaimLost if it is someone else's; then it has
	// changed nothing.
	Release(ctx context.Context, r ReleaseRequest) error

	// Renew gives the key to r.NewOwner, with a new lease, if it is InProgress under r.Owner and has not expired.
	// It is compare-and-set, so that a renewal that was delayed on its way cannot prolong a later claim.
	//
	// It returns nil as well if the key is InProgress under r.NewOwner already. It returns ErrAlreadyCompleted if the
	// key is Completed under either, and ErrClaimLost otherwise; then it has changed nothing.
	Renew(ctx context.Context, r RenewRequest) error
}

// Validator is implemented by stores that can tell a wrong configuration without a request. New calls it.
type Validator interface {
	Validate() error
}
