package idempotency

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Transactor is implemented by stores that can make a completion and writes of the work in one transaction: all of them
// happen, or none. A store that wraps another has to forward it.
type Transactor interface {
	// Begin returns a transaction for the claim, to which the store's package lets the work add its writes. It makes no
	// request. It is called at most once for each start of the work under a claim, when the work first asks, so that work
	// without a transaction pays nothing. It returns nil if the store has none after all, as one that wraps a store
	// without them does.
	Begin(r BeginRequest) Transaction
}

// BeginRequest names the claim that a Transaction is to complete.
type BeginRequest struct {
	Key   string // as stored: the namespace is part of it
	Owner string
}

// Transaction is what the work under a claim has collected, to be written with its completion. One that wraps another has
// a method Unwrap() Transaction, by which the store's package finds its own.
type Transaction interface {
	// Close ends the collecting: what the work adds after that is refused with an error. It reports whether Complete has
	// to be called in place of the store's Complete, since something was collected or could not be. It can be called
	// again, and reports the same then.
	Close() bool

	// Complete is Store.Complete, but for the claim that the transaction was begun for, and with what was collected: the
	// completion and all of that are stored, or nothing is. It is called after Close, and again with the same request if
	// the answer is none of those below.
	//
	// It returns nil as well if all of it was stored before: the request was sent twice. It returns ErrClaimLost as the
	// store does, and an error that matches ErrTransactionCancelled if nothing was stored for another reason: a condition
	// of the work failed, something else was at one of the items, the request cannot be carried out. It returns
	// ErrResultNotStored if all is stored but the result.
	Complete(ctx context.Context, r CompleteRequest) error
}

var (
	// ErrTransactionCancelled means that the work returned without an error, but that the transaction which was to store
	// what it had collected, together with its completion, was cancelled. Nothing of it was applied, the work is not done,
	// and its claim is released.
	ErrTransactionCancelled = errors.New("idempotency: transaction was cancelled")

	// ErrTransactionUndecided means that the work returned without an error, but that it is open whether the transaction
	// was applied which was to store what it had collected, together with its completion. If it was, the work is done, and
	// a later call finds that. If not, none of it was, and the work is done again after its lease.
	ErrTransactionUndecided = errors.New("idempotency: transaction is undecided")
)

// TransactionFrom returns the transaction of the innermost guarded work that ctx belongs to, and begins it if it was not
// begun yet. It is for packages of stores: dynamostore.Tx is what work calls. It returns an error, and never a transaction
// that nobody completes, if ctx is not that of guarded work, if the work runs unprotected or has ended, or if the guard's
// store has no transactions. It can be called by several goroutines of the work at a time.
func TransactionFrom(ctx context.Context) (Transaction, error) {
	c, ok := ctx.Value(claimKey{}).(*Claim)
	switch {
	case !ok:
		return nil, errors.New("idempotency: the context is not that of guarded work, want the one that the work was called with")
	case c.guard.marker != nil:
		return nil, errors.New("idempotency: the guard has Options.ReadThenMark, want one that claims: a transaction is the completion of a claim")
	case c.key == "":
		return nil, errors.New("idempotency: the work runs unprotected, want a claim: a transaction is part of its completion")
	}
	return c.work.begin(c)
}

// work is what a claim knows of the work under it.
type work struct {
	mu          sync.Mutex
	ended       bool
	transaction Transaction // nil: the work has asked for none
	runs        int         // calls of Claim.Run that have not failed: they run, or have succeeded
}

func (w *work) begin(c *Claim) (Transaction, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return nil, fmt.Errorf("idempotency: the work of %q has ended, want its writes before it returns", c.name())
	}
	if w.transaction == nil {
		if t, ok := c.guard.store.(Transactor); ok {
			w.transaction = t.Begin(BeginRequest{Key: c.key, Owner: c.owner})
		}
		if w.transaction == nil {
			return nil, fmt.Errorf("idempotency: store %T has no transactions, want a Transactor", c.guard.store)
		}
	}
	return w.transaction, nil
}

// end ends the work. It returns the transaction that completes the claim, nil if the store does. It can be called again,
// since a completion can be tried again.
func (w *work) end() Transaction {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.transaction == nil || !w.transaction.Close() {
		return nil
	}
	return w.transaction
}

// drop ends the work, one run of which has failed, and forgets what it has collected.
func (w *work) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.runs--
	if w.transaction == nil {
		return
	}
	w.transaction.Close()
	w.transaction = nil
	if w.runs > 0 {
		w.transaction = mixed{}
	}
}

// mixed stands for what work has collected of which one run has failed and another has not. Nobody can tell the writes of
// the one from those of the other, and a completion without them all would lose some.
type mixed struct{}

func (mixed) Close() bool { return true }

func (mixed) Complete(context.Context, CompleteRequest) error {
	return fmt.Errorf("%w: the work ran more than once, and failed and succeeded, want a failure to come first", ErrTransactionCancelled)
}

// Run calls f, which does the work under the claim or a part of it, and returns its error. If f fails, panics or calls
// runtime.Goexit, what the work has collected in a transaction is dropped, and there is nothing to collect in until f is
// called again: a middleware may do that. If another call has not failed, the work's transaction is cancelled, since what
// it has collected would be missing. It is for callers of Guard.Claim, and does nothing else.
func (c *Claim) Run(f func() error) (err error) {
	c.work.mu.Lock()
	c.work.ended = false
	c.work.runs++
	c.work.mu.Unlock()
	succeeded := false
	defer func() {
		if !succeeded {
			c.work.drop()
		}
	}()
	err = f()
	succeeded = err == nil
	return err
}

// commit completes the claim by the transaction t. If the completion is stored, it returns notStored, which says why data
// is missing.
func (c *Claim) commit(ctx context.Context, t Transaction, data []byte, notStored error) error {
	request := c.completeRequest(c.guard.now(), data)
	err := c.try(ctx, "transaction", func() error {
		err := t.Complete(ctx, request)
		if err == nil {
			c.remember(&request)
			err = notStored
		}
		return err
	})
	switch {
	case errors.Is(err, ErrTransactionCancelled):
		releaseErr := c.try(ctx, release, func() error { return c.release(ctx, false) })
		if errors.Is(releaseErr, ErrAlreadyCompleted) {
			// A copy of the request that was taken for lost has been applied, before the one that was cancelled or after
			// it. From the release on, none can be: the claim that its condition wants is gone.
			return notStored
		}
		return errors.Join(err, releaseErr)
	case err == nil, errors.Is(err, ErrResultNotStored), errors.Is(err, ErrClaimLost):
		return err
	default:
		return fmt.Errorf("%w: %w", ErrTransactionUndecided, err)
	}
}

const commitsInFlight = 8 // of one call of SettleAll: a transaction completes one claim

// commitAll completes the claims with the indexes, each by its transaction.
func (g *Guard) commitAll(ctx context.Context, claims []*Claim, indexes []int, transactions []Transaction, errs []error) {
	var group errgroup.Group
	group.SetLimit(commitsInFlight)
	for k, i := range indexes {
		errs[i] = fmt.Errorf("%w: %w", ErrTransactionUndecided, errStorePanicked)
		group.Go(func() error {
			defer func() {
				if value := recover(); value != nil {
					// Nobody would recover it here, and the other claims have to be settled.
					errs[i] = fmt.Errorf("%w: %v", errs[i], value)
				}
			}()
			errs[i] = claims[i].commit(ctx, transactions[k], nil, nil)
			return nil
		})
	}
	_ = group.Wait()
}
