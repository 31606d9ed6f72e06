package dynamostore

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// conditionFailed is the code of a reason that a condition was not met.
const conditionFailed = "ConditionalCheckFailed"

// CancelledError says why a Transaction was not applied. Nothing of it was, and the work's claim was released, so that it
// can be tried again. It matches idempotency.ErrTransactionCancelled.
//
// That the claim was lost is no CancelledError, but idempotency.ErrClaimLost. Conflicts with other transactions and
// throttling are reasons only if they lasted for more than some three seconds.
type CancelledError struct {
	// Reasons has what stood in the way, in the order of the actions. It is empty if the transaction was not sent, or
	// DynamoDB refused it as a whole: Err says why.
	Reasons []CancellationReason
	// Err is DynamoDB's error, or that of a method of Transaction.
	Err error

	where string
}

// CancellationReason is why an action of a transaction could not be carried out.
type CancellationReason struct {
	// Action is the place of the action in the order in which the work asked for them, from 0. The completion, for
	// which the work did not ask, comes after the last.
	Action int
	// Name names the action for people, such as: action 1, Put on table "orders".
	Name string
	// Code and Message are DynamoDB's: ConditionalCheckFailed, TransactionConflict, ValidationError and others of
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html.
	Code, Message string
	// Item is the item that failed the condition, where the action asks for it by ReturnValuesOnConditionCheckFailure.
	Item map[string]types.AttributeValue
}

// Error names the claim and each reason, but no items.
func (e *CancelledError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s: ", idempotency.ErrTransactionCancelled, e.where)
	if len(e.Reasons) == 0 {
		b.WriteString(e.Err.Error())
	}
	for i := range e.Reasons {
		if i > 0 {
			b.WriteString("; ")
		}
		r := &e.Reasons[i]
		fmt.Fprintf(&b, "%s: %s", r.Name, r.Code)
		if r.Message != "" {
			b.WriteString(" (" + r.Message + ")")
		}
	}
	return b.String()
}

// Is reports whether target is idempotency.ErrTransactionCancelled.
func (e *CancelledError) Is(target error) bool { return target == idempotency.ErrTransactionCancelled }

// Unwrap returns Err.
func (e *CancelledError) Unwrap() error { return e.Err }

// cancelled returns the error of a transaction that was not applied.
func (t *Transaction) cancelled(err error, reasons []types.CancellationReason) *CancelledError {
	e := &CancelledError{Err: err, where: t.store.where(t.key)}
	for i, r := range reasons {
		code := aws.ToString(r.Code)
		if code == "" || code == "None" || i > len(t.actions) {
			continue
		}
		e.Reasons = append(e.Reasons, CancellationReason{
			Action: i, Name: t.name(i), Code: code, Message: aws.ToString(r.Message), Item: r.Item,
		})
	}
	return e
}

// passing reports whether only what passes stood in the way.
func (e *CancelledError) passing() bool {
	for i := range e.Reasons {
		switch e.Reasons[i].Code {
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
		default:
			return false
		}
	}
	return len(e.Reasons) > 0
}
