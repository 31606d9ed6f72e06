package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// Limits of a transaction, https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html.
const (
	maxActions     = 99              // of 100, one of which is the completion
	maxTransaction = 4 * 1024 * 1024 // bytes of its items
)

// Transaction collects writes of guarded work, which are stored together with the work's completion: see Tx. It is safe
// for concurrent use.
//
// Its methods take the SDK's types and copy all of what they are given. They make no request. Each returns an error, which
// says what was found and what is wanted, if the action cannot be part of the transaction: it is the hundredth, or the
// items have more than 4 MB together (an item of Put with more than 400 KB), as far as can be told without reading them;
// it is for an item that another action is for, or for the one that the completion is for; the table or the key is missing;
// the work has ended, or has no transaction. An error of a method fails the work as if the work had returned it, even if the
// work does not: what was to be stored with the rest must not be missing from it. Only an error that there is no transaction
// cannot do that.
//
// What only DynamoDB can tell, a condition or a type for example, is told by a *CancelledError after the work has returned.
type Transaction struct {
	store *Store // nil: there is no transaction
	err   error  // why not

	key, owner string // of the claim

	mu       sync.Mutex
	closed   bool
	failed   error // the first error of a method
	actions  []types.TransactWriteItem
	items    []item
	size     int // bytes of the items at least
	keyNames map[string][]string
	commit   *commitment // nil before Complete
}

var _ idempotency.Transactor = (*Store)(nil)

// Tx returns the transaction of the innermost guarded work that ctx belongs to, such as that of a record's handler or of a
// function called by idempotency.Do. What the work collects in it is stored together with its completion, in one
// TransactWriteItems, after the work has returned without an error: all of it or nothing. So these writes happen once,
// whatever crashes, freezes or gets lost, as long as the key lives; see the package's comment.
//
// Tx never returns nil. If there is no transaction (ctx is not that of guarded work; the work has no key, or has ended; the
// guard's store is not a Store of this package), the methods of what it returns return an error that says so.
//
// Work that fails drops what it has collected.
func Tx(ctx context.Context) *Transaction {
	t, err := idempotency.TransactionFrom(ctx)
	for err == nil {
		switch u := t.(type) {
		case completer:
			return u.Transaction
		case interface {
			Unwrap() idempotency.Transaction
		}:
			t = u.Unwrap()
		default:
			err = fmt.Errorf("dynamostore: the guard's store has transactions of type %T; want those of a *dynamostore.Store", t)
		}
	}
	return &Transaction{err: err}
}

// Begin implements idempotency.Transactor.
func (s *Store) Begin(r idempotency.BeginRequest) idempotency.Transaction {
	t := &Transaction{store: s, key: r.Key, owner: r.Owner, keyNames: make(map[string][]string)}
	own := item{table: tableOf(*s.table), key: s.key(r.Key)}
	t.keyNames[own.table] = own.keyNames()
	t.items = append(t.items, own)
	return completer{t}
}

// completer is a Transaction as its guard has it. Its methods are not for the work.
type completer struct{ *Transaction }

// Close implements idempotency.Transaction.
func (c completer) Close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return len(c.actions) > 0 || c.failed != nil
}

// Put writes an item, in place of one with the same key if there is one, if the condition lets it.
func (t *Transaction) Put(p types.Put) error {
	return t.add("Put", p.TableName, func(c *copier) (types.TransactWriteItem, item) {
		p.TableName, p.Item = c.text(p.TableName), c.attributes("Item", p.Item)
		size := c.size
		c.expression(&p.ConditionExpression, &p.ExpressionAttributeNames, &p.ExpressionAttributeValues)
		if len(p.Item) == 0 {
			c.fail(errors.New("its Item is empty; want at least the key"))
		}
		if size > maxItem {
			c.fail(fmt.Errorf("its Item has at least %d bytes; want at most %d", size, maxItem))
		}
		return types.TransactWriteItem{Put: &p}, item{put: p.Item, size: size}
	})
}

// Update changes an item, or writes one with the key if there is none, if the condition lets it.
func (t *Transaction) Update(u types.Update) error {
	return t.add("Update", u.TableName, func(c *copier) (types.TransactWriteItem, item) {
		u.TableName, u.Key = c.text(u.TableName), c.attributes("Key", u.Key)
		size := c.size
		u.UpdateExpression = c.text(u.UpdateExpression)
		c.expression(&u.ConditionExpression, &u.ExpressionAttributeNames, &u.ExpressionAttributeValues)
		if u.UpdateExpression == nil {
			c.fail(errors.New("its UpdateExpression is missing; want one"))
		}
		return types.TransactWriteItem{Update: &u}, c.keyed(u.Key, size)
	})
}

// Delete deletes an item, if there is one and the condition lets it.
func (t *Transaction) Delete(d types.Delete) error {
	return t.add("Delete", d.TableName, func(c *copier) (types.TransactWriteItem, item) {
		d.TableName, d.Key = c.text(d.TableName), c.attributes("Key", d.Key)
		size := c.size
		c.expression(&d.ConditionExpression, &d.ExpressionAttributeNames, &d.ExpressionAttributeValues)
		return types.TransactWriteItem{Delete: &d}, c.keyed(d.Key, size)
	})
}

// ConditionCheck writes nothing, but cancels the transaction unless its condition on an item is met.
func (t *Transaction) ConditionCheck(k types.ConditionCheck) error {
	return t.add("ConditionCheck", k.TableName, func(c *copier) (types.TransactWriteItem, item) {
		k.TableName, k.Key = c.text(k.TableName), c.attributes("Key", k.Key)
		size := c.size
		c.expression(&k.ConditionExpression, &k.ExpressionAttributeNames, &k.ExpressionAttributeValues)
		if k.ConditionExpression == nil {
			c.fail(errors.New("its ConditionExpression is missing; want one"))
		}
		return types.TransactWriteItem{ConditionCheck: &k}, c.keyed(k.Key, size)
	})
}

// add adds the action that copied returns, for the item that it returns with it.
func (t *Transaction) add(
	operation string, table *string, copied func(*copier) (types.TransactWriteItem, item),
) error {
	if t.store == nil {
		return t.err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("dynamostore: %s in the transaction of %s: the work has ended; want it before the work returns",
			operation, t.store.where(t.key))
	}
	err := t.check(operation, table, copied)
	if err != nil {
		err = fmt.Errorf("dynamostore: %s on table %q, action %d of the transaction of %s: %w",
			operation, aws.ToString(table), len(t.actions)+1, t.store.where(t.key), err)
		if t.failed == nil {
			t.failed = err
		}
	}
	return err
}

func (t *Transaction) check(
	operation string, table *string, copied func(*copier) (types.TransactWriteItem, item),
) error {
	if aws.ToString(table) == "" {
		return errors.New("its TableName is missing; want a table's name or ARN")
	}
	if len(t.actions) == maxActions {
		return fmt.Errorf("there are %d actions already; want at most %d, since DynamoDB takes 100 and the completion is one",
			len(t.actions), maxActions)
	}
	c := &copier{}
	action, it := copied(c)
	if c.err != nil {
		return c.err
	}
	it.table = tableOf(*table)
	it.operation = operation
	if it.key != nil && t.keyNames[it.table] == nil {
		t.keyNames[it.table] = it.keyNames()
	}
	for i := range t.items {
		if !t.items[i].same(&it, t.keyNames[it.table]) {
			continue
		}
		if i == 0 {
			return errors.New("the item is that of the work's own claim, which the completion writes; want another one")
		}
		return fmt.Errorf("the item is that of action %d, %s; want each item once in a transaction",
			i, t.items[i].operation)
	}
	if size := t.size + it.size; size > maxTransaction {
		return fmt.Errorf("the items have at least %d bytes with this one; want at most %d", size, maxTransaction)
	}
	t.size += it.size
	t.actions, t.items = append(t.actions, action), append(t.items, it)
	return nil
}

// name names an action for errors, by its place from 0.
func (t *Transaction) name(action int) string {
	if action == len(t.actions) {
		return "the completion"
	}
	it := &t.items[action+1]
	return "action " + strconv.Itoa(action+1) + ", " + it.operation + " on table " + strconv.Quote(it.table)
}
