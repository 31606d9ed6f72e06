package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/oncekit/oncekit/idempotency"
)

const (
	// For how long a transaction is sent again that met another one, or a table that is throttled, and how long the waits
	// between are at most. Its record's lane waits for it.
	passingPeriod  = 3 * time.Second
	passingBackoff = 500 * time.Millisecond

	// What the client token of a request without the result has behind the owner's, of the 36 characters that a token
	// may have: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html.
	withoutResult = "-no-result"
)

// commitment is the request for a transaction. It is built once and sent again byte for byte, since DynamoDB refuses another
// request under the same client token (IdempotentParameterMismatchException), and each call of the SDK's client writes
// the attributes in another order.
type commitment struct {
	input     *dynamodb.TransactWriteItemsInput
	result    bool   // whether it stores the result
	notStored error  // why it does not
	body      []byte // nil before it is first sent
}

// Complete implements idempotency.Transaction.
func (c completer) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	t := c.Transaction
	if t.store.err != nil {
		return t.cancelled(t.store.err, nil)
	}
	if t.failed != nil {
		return t.cancelled(t.failed, nil)
	}
	if t.commit == nil {
		data, notStored := t.store.result(r)
		t.commit = t.build(r, data, t.token(), notStored)
	}
	err := t.send(ctx, r)
	if err != nil && t.commit.result {
		if refusal := t.resultRefused(r, err); refusal != nil {
			// Another request, and so with another token. The first one was not applied, and cannot be.
			t.commit = t.build(r, nil, t.token()+withoutResult, refusal)
			err = t.send(ctx, r)
		}
	}
	if err != nil {
		return err
	}
	return t.commit.notStored
}

// token returns the client token: the owner up to the name of its function, since a token is short.
func (t *Transaction) token() string {
	token, _, _ := strings.Cut(t.owner, ".")
	return token
}

// build builds the request. The completion is the last action, so that the work's have the places in which it asked.
func (t *Transaction) build(
	r idempotency.CompleteRequest, data types.AttributeValue, token string, notStored error,
) *commitment {
	statement, values := t.store.completion(r, data)
	completion := types.TransactWriteItem{Update: &types.Update{
		TableName:                           t.store.table,
		Key:                                 t.store.key(r.Key),
		ConditionExpression:                 statement.condition,
		UpdateExpression:                    statement.update,
		ExpressionAttributeNames:            statement.names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
	return &commitment{
		input: &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String(token),
			TransactItems:      append(slices.Clip(t.actions), completion),
		},
		result:    data != nil,
		notStored: notStored,
	}
}

// send sends the request until it is decided. It returns nil if the transaction is applied, an ErrClaimLost, a
// *CancelledError, or an error that leaves it open.
func (t *Transaction) send(ctx context.Context, r idempotency.CompleteRequest) error {
	s, m := t.store, t.commit
	operation := func(
		ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error) {
		return s.client.TransactWriteItems(ctx, in, m.sameBody)
	}
	begin := time.Now()
	for retry := 0; ; retry++ {
		_, err := call(ctx, s, operation, m.input)
		if err == nil {
			return nil
		}
		answer, passing := t.judge(ctx, r, err)
		if !passing || time.Since(begin) > passingPeriod {
			return answer
		}
		if !sleep(ctx, rand.N(min(conflictBackoff<<min(retry, 10), passingBackoff))) {
			return answer
		}
	}
}

// judge returns what the error of a request comes to, and whether that passes, so that the same request may fare better.
func (t *Transaction) judge(ctx context.Context, r idempotency.CompleteRequest, err error) (answer error, passing bool) {
	s := t.store
	var cancelled *types.TransactionCanceledException
	switch {
	case errors.As(err, &cancelled):
		reasons := cancelled.CancellationReasons
		if own := len(t.actions); len(reasons) == own+1 && aws.ToString(reasons[own].Code) == conditionFailed {
			// The claim is lost, or an earlier copy of the request was applied, so that its other conditions mean nothing.
			e, err := s.found(ctx, t.key, &types.ConditionalCheckFailedException{Item: reasons[own].Item})
			if err != nil {
				return err, false
			}
			return s.judgeComplete(r, &e), false
		}
		answer := t.cancelled(err, reasons)
		return answer, answer.passing()
	case isThrottled(err):
		return t.cancelled(s.failure("TransactWriteItems", t.key, err), nil), true
	case isInvalid(err), isUnusable(err):
		return t.cancelled(fmt.Errorf("dynamodb:TransactWriteItems on %d items: %w", len(t.items), err), nil), false
	default:
		return t.read(ctx, r, s.failure("TransactWriteItems", t.key, err)), false
	}
}

// read returns what the item says of a request that err leaves open. If that is still held, the request may be applied yet.
func (t *Transaction) read(ctx context.Context, r idempotency.CompleteRequest, err error) error {
	e, readErr := t.store.found(ctx, t.key, &types.ConditionalCheckFailedException{})
	if readErr != nil || e.Status == idempotency.InProgress && e.Owner == r.Owner && !expired(e, r.Now) {
		return err
	}
	return t.store.judgeComplete(r, &e)
}

// resultRefused returns an ErrResultNotStored if err says that DynamoDB may take the transaction without the result.
func (t *Transaction) resultRefused(r idempotency.CompleteRequest, err error) error {
	var cancelled *CancelledError
	if !errors.As(err, &cancelled) {
		return nil
	}
	for i := range cancelled.Reasons {
		if reason := &cancelled.Reasons[i]; reason.Action == len(t.actions) && reason.Code == "ValidationError" {
			return t.store.resultRefused(r, &smithy.GenericAPIError{Code: "ValidationException", Message: reason.Message})
		}
	}
	return t.store.resultRefused(r, cancelled.Err)
}

// isThrottled reports whether DynamoDB has not begun with a request.
func isThrottled(err error) bool {
	switch errorCode(err) {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded":
		return true
	default:
		return false
	}
}

// sameBody makes a call of the client send the bytes that the first one has sent.
func (m *commitment) sameBody(o *dynamodb.Options) {
	o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
		return stack.Serialize.Add(middleware.SerializeMiddlewareFunc("dynamostore.sameBody", m.serialize), middleware.After)
	})
}

func (m *commitment) serialize(
	ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler,
) (out middleware.SerializeOutput, metadata middleware.Metadata, err error) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok || request.GetStream() == nil {
		return next.HandleSerialize(ctx, in) // no client of the SDK as it is now
	}
	if m.body == nil {
		if m.body, err = io.ReadAll(request.GetStream()); err != nil {
			return out, metadata, err
		}
	}
	if in.Request, err = request.SetStream(bytes.NewReader(m.body)); err != nil {
		return out, metadata, err
	}
	return next.HandleSerialize(ctx, in)
}
