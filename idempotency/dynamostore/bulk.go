package dynamostore

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

const (
	statementsPerCall = 25      // BatchExecuteStatement, DynamoDB API Reference
	maxCallBytes      = 2 << 20 // of keys and results; a request has at most 16 MB, and JSON in JSON can be several times as large
	bulkCalls         = 10      // in flight for one method call, as many as the SDK's HTTP client keeps connections

	maxStatementRetries = 5
	statementBackoff    = 50 * time.Millisecond // before the first retry at most, doubled for each further one
)

var _ idempotency.BulkStore = (*Store)(nil)

// BulkSizes implements idempotency.BulkStore: 100 claims, which is what one read can ask for, and 25 completions or
// releases, which is what one call can write. With Options.SingleCalls, or a table's ARN, they are 1.
func (s *Store) BulkSizes() idempotency.BulkSizes {
	if s.bulk.never {
		return idempotency.BulkSizes{Claims: 1, Settle: 1}
	}
	return idempotency.BulkSizes{Claims: keysPerRead, Settle: statementsPerCall}
}

// bulk is what a Store needs for many requests at a time.
type bulk struct {
	texts partiQL
	never bool // one call each, always

	// counted is whether attempts were counted in this process. It only chooses the statement that is likely to do.
	counted atomic.Bool
	// hasKey is whether the table is known to have the key.
	hasKey atomic.Bool
	// denied is, for each kind, whether calls for many are not possible.
	denied [len(bulkKinds)]atomic.Bool
}

func (s *Store) newBulk() {
	s.bulk.texts = newPartiQL(*s.table, &s.options)
	// PartiQL has no cross-account access, and no table names but plain ones ("DynamoDB API operations supported by
	// resource-based policies", DynamoDB Developer Guide).
	s.bulk.never = s.options.SingleCalls || strings.HasPrefix(*s.table, "arn:")
}

// bulkKind is a method for many.
type bulkKind int

const (
	claims bulkKind = iota
	completions
	releases
	renewals
	finds
	marks
)

// bulkKinds has the name of each, and the IAM actions that it needs.
var bulkKinds = [...]struct{ name, actions string }{
	claims:      {"claims", "dynamodb:PartiQLInsert, dynamodb:PartiQLUpdate and dynamodb:BatchGetItem"},
	completions: {"completions", "dynamodb:PartiQLUpdate and dynamodb:BatchGetItem"},
	releases:    {"releases", "dynamodb:PartiQLDelete and dynamodb:BatchGetItem"},
	renewals:    {"renewals", "dynamodb:PartiQLUpdate and dynamodb:BatchGetItem"},
	finds:       {"reads", "dynamodb:BatchGetItem"},
	marks:       {"marks", "dynamodb:PartiQLInsert and dynamodb:BatchGetItem"},
}

// oneByOne reports whether there are no calls for many of the kind.
func (s *Store) oneByOne(kind bulkKind) bool { return s.bulk.never || s.bulk.denied[kind].Load() }

// deny ends calls for many of the kind.
func (s *Store) deny(ctx context.Context, kind bulkKind, operation string, err error) {
	if s.bulk.denied[kind].Swap(true) {
		return
	}
	defer func() { _ = recover() }() // a logger that panics loses its line, and that is all
	logger := s.options.Logger
	if logger == nil {
		logger = slog.Default()
	}
	k := bulkKinds[kind]
	logger.LogAttrs(ctx, slog.LevelWarn,
		"dynamostore: from now on "+k.name+" are one call each, where one call for many would do; that needs "+k.actions,
		slog.String("table", *s.table), slog.String("operation", "dynamodb:"+operation), slog.Any("error", err))
}

// outcome is what became of a statement or of a read.
type outcome uint8

const (
	applied outcome = iota
	refused         // by its condition
	single          // the single call has to do it, or to say why it cannot be done
	failed          // it is undecided, or the store is unusable
)

// outcomeOf returns the outcome of all that was in a call, or in a statement, which ended with err.
func (s *Store) outcomeOf(ctx context.Context, kind bulkKind, operation string, err error) outcome {
	switch code := errorCode(err); {
	case code == "AccessDeniedException", code == "AccessDenied",
		code == "UnknownOperationException", // a server without it
		isInvalid(err) && strings.Contains(err.Error(), "well formed"):
		s.deny(ctx, kind, operation, err)
		return single
	case isInvalid(err) && !isUnusable(err):
		// One key, result or condition is wrong. Alone each is judged by itself.
		return single
	default:
		return failed
	}
}

// each calls do for each of the requests, for several at a time.
func (s *Store) each(requests []int, do func(i int)) {
	parallel(len(requests), s.options.MaxInFlight, func(j int) { do(requests[j]) })
}

// passes divides n requests so that none of them has two for the same key. A later one comes after an earlier one.
func passes(n int, key func(i int) string) [][]int {
	all := make([]int, n)
	seen := make(map[string]int, n)
	result := [][]int{all[:0]}
	for i := range n {
		k := key(i)
		pass := seen[k]
		seen[k] = pass + 1
		if pass == len(result) {
			result = append(result, nil)
		}
		result[pass] = append(result[pass], i)
	}
	return result
}

// keyFits reports whether a key can be in a call with others. A key that DynamoDB does not take spoils the whole call, and
// one that is not UTF-8 would be another key in the answer, since the SDK replaces what JSON does not have. Limits of
// "Service, account, and table quotas", DynamoDB Developer Guide.
func (s *Store) keyFits(key string) bool {
	limit := 2048
	if s.options.sorted() {
		limit = 1024
	}
	return key != "" && len(key) <= limit && utf8.ValidString(key)
}

// write is one statement.
type write struct {
	request    int // which it is for
	key        string
	text       *string
	parameters []types.AttributeValue
	size       int // bytes of the result

	outcome outcome
	err     error // where the outcome is failed
}

// write makes the writes, of which none may have the key of another, with up to 25 statements a call.
func (s *Store) write(ctx context.Context, kind bulkKind, writes []write) {
	var calls [][]write
	for len(writes) > 0 {
		n, size := 0, 0
		for n < len(writes) && n < statementsPerCall {
			size += len(writes[n].key) + writes[n].size
			if n > 0 && size > maxCallBytes {
				break
			}
			n++
		}
		calls = append(calls, writes[:n])
		writes = writes[n:]
	}
	parallel(len(calls), bulkCalls, func(i int) { s.writeCall(ctx, kind, calls[i]) })
}

// writeCall is write for one call. It makes further ones for the statements that can be expected to fare better then.
func (s *Store) writeCall(ctx context.Context, kind bulkKind, writes []write) {
	open := make([]*write, len(writes))
	for i := range writes {
		open[i] = &writes[i]
	}
	for retry := 0; ; retry++ {
		statements := make([]types.BatchStatementRequest, len(open))
		for i, w := range open {
			statements[i] = types.BatchStatementRequest{Statement: w.text, Parameters: w.parameters}
		}
		out, err := call(ctx, s, s.client.BatchExecuteStatement, &dynamodb.BatchExecuteStatementInput{Statements: statements})
		if err == nil && len(out.Responses) != len(open) {
			err = fmt.Errorf("%d answers to %d statements", len(out.Responses), len(open))
		}
		if err != nil {
			result := s.outcomeOf(ctx, kind, "BatchExecuteStatement", err)
			for _, w := range open {
				w.outcome, w.err = result, s.failure("BatchExecuteStatement", w.key, err)
			}
			return
		}
		for i, w := range open {
			w.outcome, w.err = s.statementOutcome(ctx, kind, w, out.Responses[i].Error)
		}
		open = slices.DeleteFunc(open, func(w *write) bool { return w.outcome != failed || !isPassing(w.err) })
		if len(open) == 0 || retry == maxStatementRetries || !sleep(ctx, rand.N(statementBackoff<<retry)) {
			return
		}
	}
}

// statementOutcome returns what became of a write whose statement had this error, nil for none.
func (s *Store) statementOutcome(
	ctx context.Context, kind bulkKind, w *write, e *types.BatchStatementError,
) (outcome, error) {
	if e == nil {
		return applied, nil
	}
	switch e.Code {
	case types.BatchStatementErrorCodeEnumConditionalCheckFailed, types.BatchStatementErrorCodeEnumDuplicateItem:
		return refused, nil
	}
	err := statementError(e)
	verb, _, _ := strings.Cut(*w.text, " ")
	operation := map[string]string{"INSERT": "PartiQLInsert", "UPDATE": "PartiQLUpdate", "DELETE": "PartiQLDelete"}[verb]
	return s.outcomeOf(ctx, kind, operation, err), s.failure(operation, w.key, err)
}
