package watermark

import (
	"errors"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// Validate returns an error that names what of the request no Store can do, and nil if there is nothing.
func (r ClaimRequest) Validate() error {
	switch {
	case r.Key == "":
		return errNoKey
	case r.Owner == "":
		return errNoOwner
	case r.Lease.UnixMilli() <= r.Now.UnixMilli():
		return fmt.Errorf("watermark: lease ends %v after now, want 1ms or more", r.Lease.Sub(r.Now))
	case r.Skew < 0:
		return fmt.Errorf("watermark: skew is %v, want 0 or more", r.Skew)
	case r.Expiry.Unix() <= r.Lease.Add(r.Skew).Unix():
		return fmt.Errorf("watermark: expiry is %v after the lease, want 1s or more beyond the skew of %v",
			r.Expiry.Sub(r.Lease), r.Skew)
	}
	return nil
}

// Validate returns an error that names what of the request no Store can do, and nil if there is nothing.
func (r AdvanceRequest) Validate() error {
	if r.Owner == "" {
		return errNoOwner
	}
	return validMove(r.Key, r.Now, r.To, r.Expiry)
}

// Validate returns an error that names what of the request no Store can do, and nil if there is nothing.
func (r RewindRequest) Validate() error { return validMove(r.Key, r.Now, r.To, r.Expiry) }

func validMove(key string, now time.Time, to Position, expiry time.Time) error {
	switch {
	case key == "":
		return errNoKey
	case expiry.Unix() <= now.Unix():
		return fmt.Errorf("watermark: expiry is %v after now, want 1s or more", expiry.Sub(now))
	}
	return to.Valid()
}

var (
	errNoKey   = errors.New("watermark: key is empty, want one that Key made of three parts that are not empty")
	errNoOwner = errors.New("watermark: owner is empty, want a token that is fresh for every claim")
)

// InProgress is the error of a claim that is refused by an owner whose lease is the given one. It matches
// idempotency.ErrInProgress, and says when the shard can be taken over by the caller's clock.
func (r ClaimRequest) InProgress(lease time.Time) *idempotency.InProgressError {
	// The limit is strict, in milliseconds.
	free := lease.Add(r.Skew + time.Millisecond)
	return &idempotency.InProgressError{
		Key: r.Key, Lease: lease, Free: time.Now().Add(max(free.Sub(r.Now), 0)),
	}
}
