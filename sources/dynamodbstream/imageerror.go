package dynamodbstream

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/oncekit/oncekit/batch"
)

// imageError is why an item could not be decoded into the handler's type. What it wraps says more, but its text goes to
// logs and must show nothing of the item, which may be personal: the attribute, kinds and types, but no values.
type imageError struct {
	attribute string // "" if it is none in particular
	err       error
}

func (e *imageError) Error() string {
	if e.attribute == "" {
		return e.problem()
	}
	return fmt.Sprintf("attribute %.100q: %s", e.attribute, e.problem())
}

func (e *imageError) problem() string {
	if misfit, ok := errors.AsType[*attributevalue.UnmarshalTypeError](e.err); ok {
		return fmt.Sprintf("%s does not fit a Go %v", valueKind(misfit.Value), misfit.Type)
	}
	if misfit, ok := errors.AsType[*attributevalue.UnmarshalError](e.err); ok {
		return fmt.Sprintf("value does not fit a Go %v", misfit.Type)
	}
	if misfit, ok := errors.AsType[*strconv.NumError](e.err); ok {
		for _, reason := range []error{strconv.ErrSyntax, strconv.ErrRange} {
			if errors.Is(misfit.Err, reason) {
				return fmt.Sprintf("number does not fit its field: %v", reason)
			}
		}
	}
	if p, ok := errors.AsType[*batch.PanicError](e.err); ok {
		return p.Error()
	}
	return fmt.Sprintf("%T", e.err)
}

func (e *imageError) Unwrap() error { return e.err }

// valueKind returns the kind out of what an UnmarshalTypeError says of a value, which may go on with the value itself.
func valueKind(value string) string {
	for _, kind := range []string{
		"binary set", "binary", "bool", "list", "map key", "map", "number set", "number", "string set", "string",
	} {
		if strings.HasPrefix(value, kind) {
			return kind
		}
	}
	return "value"
}
