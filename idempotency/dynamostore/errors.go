package dynamostore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/oncekit/oncekit/idempotency"
)

// where names the item of a key: the table and all of its primary key.
func (s *Store) where(key string) string {
	if !s.options.sorted() {
		return fmt.Sprintf("table %q, %s=%q", *s.table, s.options.KeyAttribute, key)
	}
	return fmt.Sprintf("table %q, %s=%q, %s=%q",
		*s.table, s.options.KeyAttribute, s.options.partitionValue(key), s.options.SortKeyAttribute, key)
}

// failure returns the error of a request that failed. It does not name the key where no key would have fared better,
// so that the records of a batch that meet it say the same.
func (s *Store) failure(operation, key string, err error) error {
	if isUnusable(err) {
		names := s.options.KeyAttribute + " (S)"
		if s.options.sorted() {
			names += ", " + s.options.SortKeyAttribute + " (S)"
		}
		return fmt.Errorf("%w: dynamodb:%s on table %q with key %s: %w",
			idempotency.ErrStoreUnusable, operation, *s.table, names, err)
	}
	return fmt.Errorf("dynamostore: dynamodb:%s on %s: %w%s", operation, s.where(key), err, throttling(err))
}

func (s *Store) lost(key string, e idempotency.Entry, owner string) error {
	found := "it is gone"
	switch {
	case e.Status == idempotency.Absent:
	case e.Owner == owner:
		found = "it has expired"
	case e.Owner == "":
		found = "it is " + e.Status.String() + " without an owner"
	default:
		found = "it is " + e.Status.String() + " under another owner"
	}
	return fmt.Errorf("%w: %s: %s", idempotency.ErrClaimLost, s.where(key), found)
}

func (s *Store) alreadyCompleted(key string) error {
	return fmt.Errorf("%w: %s", idempotency.ErrAlreadyCompleted, s.where(key))
}

// contradiction is a refusal with an item that meets the condition. Only a weaker writer that puts back what it read
// before can bring it about. Nobody can say what happened, so neither "done" nor "lost" would be true.
func (s *Store) contradiction(key string) error {
	return fmt.Errorf("dynamostore: %s: the condition failed, but the item meets it", s.where(key))
}

// isUnusable reports whether no request of this kind can succeed before someone changes the configuration.
func isUnusable(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "ResourceNotFoundException", "TableNotFoundException",
		// "Common errors" and "Error handling with DynamoDB", DynamoDB API Reference and Developer Guide.
		"AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "InvalidClientTokenId",
		"MissingAuthenticationTokenException", "MissingAuthenticationToken", "IncompleteSignatureException",
		"IncompleteSignature", "InvalidSignatureException", "SignatureDoesNotMatch", "NotAuthorized", "OptInRequired":
		return true
	case "ValidationException":
		// There is no code for a table with another key, only these texts.
		message := api.ErrorMessage()
		return strings.Contains(message, "Missing the key") || // PutItem
			strings.Contains(message, "does not match the schema") || // UpdateItem, DeleteItem, GetItem, BatchGetItem
			strings.Contains(message, "mandatory equality on all key attributes") || // PartiQL
			strings.Contains(message, "Type mismatch for key") || // PutItem
			strings.Contains(message, "Type mismatch for Index Key") // an index on one of the attributes
	default:
		return false
	}
}

// statementError returns the error of a statement as the call for it alone would have it.
func statementError(e *types.BatchStatementError) error {
	code := string(e.Code)
	switch e.Code {
	case types.BatchStatementErrorCodeEnumResourceNotFound:
		code = "ResourceNotFoundException"
	case types.BatchStatementErrorCodeEnumAccessDenied:
		code = "AccessDeniedException"
	case types.BatchStatementErrorCodeEnumValidationError:
		code = "ValidationException"
	}
	return &smithy.GenericAPIError{Code: code, Message: aws.ToString(e.Message)}
}

// isPassing reports whether the error of a statement is one that passes.
func isPassing(err error) bool {
	switch types.BatchStatementErrorCodeEnum(errorCode(err)) {
	case types.BatchStatementErrorCodeEnumThrottlingError,
		types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded,
		types.BatchStatementErrorCodeEnumRequestLimitExceeded,
		types.BatchStatementErrorCodeEnumTransactionConflict,
		types.BatchStatementErrorCodeEnumInternalServerError:
		return true
	default:
		return false
	}
}

// errorCode returns DynamoDB's code for an error, "" if it is not DynamoDB's.
func errorCode(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

// throttling returns why DynamoDB throttled a request, and which resource. The SDK's error has it but does not say it.
func throttling(err error) string {
	var reasons []types.ThrottlingReason
	var provisioned *types.ProvisionedThroughputExceededException
	var throttled *types.ThrottlingException
	var limited *types.RequestLimitExceeded
	switch {
	case errors.As(err, &provisioned):
		reasons = provisioned.ThrottlingReasons
	case errors.As(err, &throttled):
		reasons = throttled.ThrottlingReasons
	case errors.As(err, &limited):
		reasons = limited.ThrottlingReasons
	}
	if len(reasons) == 0 {
		return ""
	}
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = aws.ToString(r.Reason) + " on " + aws.ToString(r.Resource)
	}
	return " (throttled: " + strings.Join(texts, ", ") + ")"
}
