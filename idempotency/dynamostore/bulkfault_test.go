package dynamostore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// meddler is a client whose statements and keys do not all arrive.
type meddler struct {
	dynamostore.Client

	mu         sync.Mutex
	calls      []int                                               // how many statements or keys each call had
	statement  func(call, i int) types.BatchStatementErrorCodeEnum // "" sends it
	afterwards bool                                                // sends it, and answers with the error all the same
	key        func(call, i int) bool                              // whether it is left unprocessed
	see        func(types.BatchStatementRequest)
}

func (m *meddler) call(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, n)
	return len(m.calls) - 1
}

func (m *meddler) BatchExecuteStatement(
	ctx context.Context, in *dynamodb.BatchExecuteStatementInput, optFns ...func(*dynamodb.Options),
) (*dynamodb.BatchExecuteStatementOutput, error) {
	call := m.call(len(in.Statements))
	responses := make([]types.BatchStatementResponse, len(in.Statements))
	var sent []types.BatchStatementRequest
	var places []int
	for i, statement := range in.Statements {
		if m.see != nil {
			m.see(statement)
		}
		var code types.BatchStatementErrorCodeEnum
		if m.statement != nil {
			code = m.statement(call, i)
		}
		if code != "" {
			responses[i].Error = &types.BatchStatementError{Code: code, Message: aws.String("as the test has it")}
		}
		if code == "" || m.afterwards {
			sent, places = append(sent, statement), append(places, i)
		}
	}
	if len(sent) > 0 {
		out, err := m.Client.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: sent}, optFns...)
		if err != nil {
			return nil, err
		}
		for j, i := range places {
			if responses[i].Error == nil {
				responses[i] = out.Responses[j]
			}
		}
	}
	return &dynamodb.BatchExecuteStatementOutput{Responses: responses}, nil
}

func (m *meddler) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, optFns ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{UnprocessedKeys: make(map[string]types.KeysAndAttributes)}
	for table, request := range in.RequestItems {
		if !aws.ToBool(request.ConsistentRead) {
			return nil, errors.New("the read is not consistent")
		}
		call := m.call(len(request.Keys))
		var keys, left []map[string]types.AttributeValue
		for i, key := range request.Keys {
			if m.key != nil && m.key(call, i) {
				left = append(left, key)
			} else {
				keys = append(keys, key)
			}
		}
		if len(left) > 0 {
			out.UnprocessedKeys[table] = types.KeysAndAttributes{Keys: left}
		}
		if len(keys) == 0 {
			continue
		}
		read, err := m.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			table: {Keys: keys, ConsistentRead: request.ConsistentRead}}}, optFns...)
		if err != nil {
			return nil, err
		}
		out.Responses = read.Responses
	}
	return out, nil
}

// bulkTransition is one of the bulk methods, brought to where it succeeds for some requests and not for others.
type bulkTransition struct {
	name    string
	prepare func(t testing.TB, p planter)
	do      func(ctx context.Context, store idempotency.BulkStore) map[string]int
	want    map[string]int
	reads   int // BatchGetItem
}

func bulkTransitions() []bulkTransition {
	mine, others := bulkClaims("a", 40), bulkClaims("b", 40)
	half := append(slices.Clone(mine[:20]), others[20:]...)
	nothing := func(testing.TB, planter) {}
	claimed := func(requests []idempotency.ClaimRequest) func(t testing.TB, p planter) {
		return func(t testing.TB, p planter) {
			for i, answer := range p.ClaimAll(t.Context(), requests) {
				if answer.Err != nil || !answer.Claimed {
					t.Fatalf("claim %d = %+v", i, answer)
				}
			}
		}
	}
	return []bulkTransition{
		{"claims", nothing, func(ctx context.Context, s idempotency.BulkStore) map[string]int {
			return summary(s.ClaimAll(ctx, mine))
		}, map[string]int{"claimed": 40}, 0},
		{"claims, some held", claimed(others[20:]), func(ctx context.Context, s idempotency.BulkStore) map[string]int {
			return summary(s.ClaimAll(ctx, mine))
		}, map[string]int{"claimed": 20, "INPROGRESS": 20}, 1},
		{"takeovers", claimed(others[:30]), func(ctx context.Context, s idempotency.BulkStore) map[string]int {
			return summary(s.ClaimAll(ctx, later(mine, "a")))
		}, map[string]int{"claimed": 10, "taken over": 30}, 1},
		{"completions, some lost", claimed(half), func(ctx context.Context, s idempotency.BulkStore) map[string]int {
			return summaryOf(s.CompleteAll(ctx, bulkCompletions(mine)))
		}, map[string]int{"done": 20, "lost": 20}, 1},
		{"releases, some lost", claimed(half), func(ctx context.Context, s idempotency.BulkStore) map[string]int {
			return summaryOf(s.ReleaseAll(ctx, bulkReleases(mine)))
		}, map[string]int{"done": 20, "lost": 20}, 1},
		{"renewals, some lost", claimed(half), func(ctx context.Context, s idempotency.BulkStore) map[string]int {
			return summaryOf(s.RenewAll(ctx, bulkRenewals(mine)))
		}, map[string]int{"done": 20, "lost": 20}, 1},
		{"marks", nothing, func(ctx context.Context, s idempotency.BulkStore) map[string]int {
			return summaryOf(s.(idempotency.Marker).MarkAll(ctx, bulkMarks(mine)))
		}, map[string]int{"done": 40}, 0},
		{"marks, some held", claimed(others[20:]), func(ctx context.Context, s idempotency.BulkStore) map[string]int {
			return summaryOf(s.(idempotency.Marker).MarkAll(ctx, bulkMarks(mine)))
		}, map[string]int{"done": 20, "lost": 20}, 1},
		{"marks, some taken over", claimed(others[20:]), func(ctx context.Context, s idempotency.BulkStore) map[string]int {
			return summaryOf(s.(idempotency.Marker).MarkAll(ctx, bulkMarks(later(mine, "a"))))
		}, map[string]int{"done": 40}, 1},
	}
}

// TestBulkLostReplies loses the reply of each call in turn, and of all at once. The SDK sends them again, and every
// transition recognises its own write.
func TestBulkLostReplies(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t, dynamotest.ShortRetries)
	lose := dynamotest.LoseReply
	for _, transition := range bulkTransitions() {
		for _, test := range []struct {
			name      string
			operation string
			script    []dynamotest.Fault
		}{
			{"first call", "BatchExecuteStatement", []dynamotest.Fault{lose}},
			{"second call", "BatchExecuteStatement", []dynamotest.Fault{nil, lose}},
			{"third call", "BatchExecuteStatement", []dynamotest.Fault{nil, nil, lose}},
			{"fourth call", "BatchExecuteStatement", []dynamotest.Fault{nil, nil, nil, lose}},
			{"both", "BatchExecuteStatement", []dynamotest.Fault{lose, lose}},
			{"read", "BatchGetItem", []dynamotest.Fault{lose, lose}},
			{"request", "BatchExecuteStatement", []dynamotest.Fault{dynamotest.Drop, dynamotest.ServerError}},
			{"throttled call", "BatchExecuteStatement", []dynamotest.Fault{dynamotest.Throttle("TableWriteKeyRangeThroughputExceeded")}},
		} {
			t.Run(transition.name+"/"+test.name, func(t *testing.T) {
				p := newPlanter(t, client, layouts()[0].options)
				transition.prepare(t, p)
				proxy.Script(test.operation, test.script...)
				got := transition.do(t.Context(), p)
				proxy.Script(test.operation)
				if diff := cmp.Diff(transition.want, got); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestBulkStatementErrors has statements fail one by one in the first calls. Only those are sent again, and the rest is
// not kept from being done.
func TestBulkStatementErrors(t *testing.T) {
	client := dynamotest.Client(t)
	for _, code := range []types.BatchStatementErrorCodeEnum{
		types.BatchStatementErrorCodeEnumThrottlingError, types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded,
		types.BatchStatementErrorCodeEnumRequestLimitExceeded, types.BatchStatementErrorCodeEnumTransactionConflict,
		types.BatchStatementErrorCodeEnumInternalServerError,
	} {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, applied: %t", code, applied), func(t *testing.T) {
				t.Parallel()
				for _, transition := range bulkTransitions() {
					p := newPlanter(t, client, layouts()[0].options)
					transition.prepare(t, p)
					m := &meddler{Client: client, afterwards: applied}
					m.statement = func(call, i int) types.BatchStatementErrorCodeEnum {
						if call < 2 && i%5 == 0 {
							return code
						}
						return ""
					}
					got := transition.do(t.Context(), dynamostore.New(m, p.table))
					if diff := cmp.Diff(transition.want, got); diff != "" {
						t.Errorf("%s: answers (-want +got):\n%s", transition.name, diff)
					}
					slices.Sort(m.calls)
					if transition.name == "claims" && !applied {
						if diff := cmp.Diff([]int{3, 5, 15, 25}, m.calls); diff != "" {
							t.Errorf("%s: statements of each call (-want +got):\n%s", transition.name, diff)
						}
					}
				}
			})
		}
	}
}

// TestBulkStatementErrorsForGood has statements fail whatever is done. They alone are undecided.
func TestBulkStatementErrorsForGood(t *testing.T) {
	for _, test := range []struct {
		code  types.BatchStatementErrorCodeEnum
		want  string // of the error
		calls int
	}{
		{types.BatchStatementErrorCodeEnumThrottlingError, "dynamodb:PartiQLInsert on table", 6},
		{types.BatchStatementErrorCodeEnumInternalServerError, "InternalServerError", 6},
		{types.BatchStatementErrorCodeEnumItemCollectionSizeLimitExceeded, "ItemCollectionSizeLimitExceeded", 1},
		{"SomethingNew", "SomethingNew", 1},
	} {
		t.Run(string(test.code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				store := dynamostore.New(&fakeBulk{execute: func(n int) (*dynamodb.BatchExecuteStatementOutput, error) {
					calls++
					out := &dynamodb.BatchExecuteStatementOutput{Responses: make([]types.BatchStatementResponse, n)}
					out.Responses[0].Error = &types.BatchStatementError{Code: test.code, Message: aws.String("m")}
					return out, nil
				}}, "table")
				start := time.Now()
				answers := store.ClaimAll(t.Context(), bulkClaims("a", 20))
				if diff := cmp.Diff(map[string]int{"claimed": 19, "undecided": 1}, summary(answers)); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				if err := answers[0].Err; err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "orders#0000") {
					t.Errorf("error is %v; want it to contain %q and the key", err, test.want)
				}
				if calls != test.calls {
					t.Errorf("%d calls; want %d", calls, test.calls)
				}
				if took, most := time.Since(start), 50*time.Millisecond*(1+2+4+8+16); took > most {
					t.Errorf("took %v; want at most %v", took, most)
				}

				// Without the time for a second call there is none.
				calls = 0
				ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
				defer cancel()
				store.ClaimAll(ctx, bulkClaims("a", 20))
				if calls != 1 {
					t.Errorf("%d calls without time; want 1", calls)
				}
			})
		})
	}
}

// fakeBulk is a client with one method.
type fakeBulk struct {
	dynamostore.Client
	execute func(n int) (*dynamodb.BatchExecuteStatementOutput, error)
	see     func(types.BatchStatementRequest)
}

func (f *fakeBulk) BatchExecuteStatement(
	_ context.Context, in *dynamodb.BatchExecuteStatementInput, _ ...func(*dynamodb.Options),
) (*dynamodb.BatchExecuteStatementOutput, error) {
	if f.see != nil {
		for _, statement := range in.Statements {
			f.see(statement)
		}
	}
	return f.execute(len(in.Statements))
}

// TestBulkCallSize has results so large that 25 of them do not go into one call.
func TestBulkCallSize(t *testing.T) {
	var mu sync.Mutex
	var calls []int
	store := dynamostore.New(&fakeBulk{execute: func(n int) (*dynamodb.BatchExecuteStatementOutput, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, n)
		return &dynamodb.BatchExecuteStatementOutput{Responses: make([]types.BatchStatementResponse, n)}, nil
	}}, "table")
	requests := bulkCompletions(bulkClaims("a", 30))
	for i := range requests[:14] {
		requests[i].Data = text(300 << 10)
	}
	if diff := cmp.Diff(map[string]int{"done": 30}, summaryOf(store.CompleteAll(t.Context(), requests))); diff != "" {
		t.Errorf("completions (-want +got):\n%s", diff)
	}
	slices.Sort(calls)
	if diff := cmp.Diff([]int{6, 6, 18}, calls); diff != "" {
		t.Errorf("statements of each call (-want +got):\n%s", diff)
	}
}

// TestBulkKeyTwice has requests for one key, of which no call may have two: DynamoDB takes no such batch.
func TestBulkKeyTwice(t *testing.T) {
	calls, keys := 0, make(map[string]bool)
	store := dynamostore.New(&fakeBulk{
		see: func(r types.BatchStatementRequest) {
			key := r.Parameters[0].(*types.AttributeValueMemberS).Value
			if keys[key] {
				t.Errorf("%s is twice in a call", key)
			}
			keys[key] = true
		},
		execute: func(n int) (*dynamodb.BatchExecuteStatementOutput, error) {
			calls++
			clear(keys)
			return &dynamodb.BatchExecuteStatementOutput{Responses: make([]types.BatchStatementResponse, n)}, nil
		},
	}, "table", func(o *dynamostore.Options) { o.MaxInFlight = 1 })
	r := bulkClaims("a", 8)
	store.ClaimAll(t.Context(), append(append(r, r[:4]...), r[0]))
	if calls != 3 {
		t.Errorf("%d calls; want 3, as many as the key that comes most often", calls)
	}
}

// TestBulkPanic has a client panic. That is the caller's to recover, in whichever goroutine it was.
func TestBulkPanic(t *testing.T) {
	store := dynamostore.New(&fakeBulk{execute: func(int) (*dynamodb.BatchExecuteStatementOutput, error) { panic("broken") }}, "table",
		func(o *dynamostore.Options) { o.MaxInFlight = 1 })
	for _, n := range []int{10, 60} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "broken") {
					t.Errorf("%d claims: panic is %v; want the client's", n, v)
				}
			}()
			t.Errorf("%d claims: answers %v", n, store.ClaimAll(t.Context(), bulkClaims("a", n)))
		}()
	}
}

// TestBulkGoexit has a client end its goroutine. Nothing that it was asked may look as if it had been done.
func TestBulkGoexit(t *testing.T) {
	store := dynamostore.New(&fakeBulk{execute: func(int) (*dynamodb.BatchExecuteStatementOutput, error) {
		runtime.Goexit()
		return nil, nil
	}}, "table")
	claims := bulkClaims("a", 60)
	for name, do := range map[string]func() any{
		"claims":      func() any { return summary(store.ClaimAll(t.Context(), claims)) },
		"completions": func() any { return summaryOf(store.CompleteAll(t.Context(), bulkCompletions(claims))) },
	} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "Goexit") {
					t.Errorf("%s: panic is %v; want one that says why", name, v)
				}
			}()
			t.Errorf("%s: answers %v; want a panic", name, do())
		}()
	}
}

// TestBulkAnswersMissing has a server answer fewer statements than it was sent.
func TestBulkAnswersMissing(t *testing.T) {
	store := dynamostore.New(&fakeBulk{execute: func(n int) (*dynamodb.BatchExecuteStatementOutput, error) {
		return &dynamodb.BatchExecuteStatementOutput{Responses: make([]types.BatchStatementResponse, n-1)}, nil
	}}, "table")
	answers := store.ClaimAll(t.Context(), bulkClaims("a", 20))
	if diff := cmp.Diff(map[string]int{"undecided": 20}, summary(answers)); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if err := answers[7].Err; !strings.Contains(err.Error(), "19 answers to 20 statements") {
		t.Errorf("error is %v", err)
	}
}

// TestBulkUnprocessedKeys has reads come back in part, as they do beyond 16 MB or when throttled.
func TestBulkUnprocessedKeys(t *testing.T) {
	client := dynamotest.Client(t)
	p := newPlanter(t, client, layouts()[0].options)
	r := bulkClaims("a", 100)
	if diff := cmp.Diff(map[string]int{"claimed": 100}, summary(p.ClaimAll(t.Context(), r))); diff != "" {
		t.Fatal(diff)
	}
	p.CompleteAll(t.Context(), bulkCompletions(r))
	for _, test := range []struct {
		name  string
		key   func(call, i int) bool
		want  map[string]int
		calls []int
	}{
		{"in part", func(call, i int) bool { return call < 3 && i >= 40 }, map[string]int{"COMPLETED": 100}, []int{100, 60, 20}},
		{"not at all at first", func(call, _ int) bool { return call < 2 }, map[string]int{"COMPLETED": 100}, []int{100, 100, 100}},
		// What could not be read goes on as if it had not asked: its INSERT is refused, and what refused it cannot be read.
		{"some never", func(call, i int) bool { return i == 0 }, map[string]int{"COMPLETED": 99, "undecided": 1},
			[]int{100, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &meddler{Client: client, key: test.key}
			answers := dynamostore.New(m, p.table).ClaimAll(t.Context(), asked(bulkClaims("b", 100)))
			if diff := cmp.Diff(test.want, summary(answers)); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.calls, m.calls); diff != "" {
				t.Errorf("keys of each call (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBulkDenied has the function not be allowed what calls for many need. The first one to find out says so, once, and
// everything is done all the same.
func TestBulkDenied(t *testing.T) {
	client := dynamotest.Client(t)
	for i, transition := range bulkTransitions() {
		for _, denied := range []string{"statement", "call", "read", "unknown", "malformed"} {
			if denied == "read" && transition.reads == 0 {
				continue
			}
			if i > 0 && (denied == "unknown" || denied == "malformed") {
				continue // for all methods they are as "call" is
			}
			t.Run(transition.name+"/"+denied, func(t *testing.T) {
				p := newPlanter(t, client, layouts()[0].options)
				transition.prepare(t, p)
				proxy := dynamotest.NewProxy(t)
				var wire dynamostore.Client = proxy.Client(t)
				fail := dynamotest.Fail("AccessDeniedException", "not authorized to perform: dynamodb:PartiQL")
				many := slices.Repeat([]dynamotest.Fault{fail}, 20)
				switch denied {
				case "statement":
					wire = &meddler{Client: wire, statement: func(int, int) types.BatchStatementErrorCodeEnum {
						return types.BatchStatementErrorCodeEnumAccessDenied
					}}
				case "call":
					proxy.Script("BatchExecuteStatement", many...)
				case "read":
					proxy.Script("BatchGetItem", many...)
				case "unknown":
					proxy.Script("BatchExecuteStatement", slices.Repeat([]dynamotest.Fault{
						dynamotest.Fail("UnknownOperationException", "")}, 20)...)
				case "malformed":
					proxy.Script("BatchExecuteStatement", slices.Repeat([]dynamotest.Fault{
						dynamotest.Fail("ValidationException", "Statement wasn't well formed, can't be processed")}, 20)...)
				}
				var log bytes.Buffer
				store := dynamostore.New(wire, p.table, func(o *dynamostore.Options) {
					o.Logger = slog.New(slog.NewTextHandler(&log, nil))
				})
				sizes := store.BulkSizes()
				if diff := cmp.Diff(transition.want, transition.do(t.Context(), store)); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				if store.BulkSizes() != sizes {
					t.Errorf("sizes are %+v; want them to stay %+v", store.BulkSizes(), sizes)
				}
				proxy.Requests()
				transition.do(t.Context(), store)
				if got := proxy.Requests(); got["BatchExecuteStatement"]+got["BatchGetItem"] > 0 {
					t.Errorf("requests are %v; want none for many", got)
				}
				if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "dynamodb:BatchGetItem") ||
					!strings.Contains(log.String(), "one call each") {
					t.Errorf("log is %q; want one line with what it needs", log.String())
				}
			})
		}
	}
}

// TestBulkUnusable has tables that no request can succeed with. Every answer says so, after one try.
func TestBulkUnusable(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t)
	plain := dynamotest.Table(t, client)
	other := dynamotest.Table(t, client, func(o *dynamostore.Options) { o.KeyAttribute = "pk" })
	for _, test := range []struct {
		name   string
		table  string
		option func(*dynamostore.Options)
		fault  dynamotest.Fault
	}{
		{name: "unknown table", table: "no-such-table"},
		{name: "other key", table: other},
		{name: "no sort key", table: plain, option: func(o *dynamostore.Options) { o.SortKeyAttribute = "sk" }},
		{name: "unknown credentials", table: plain, fault: dynamotest.Fail("UnrecognizedClientException", "invalid token")},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := dynamostore.New(client, test.table, test.option)
			r := bulkClaims("a", 30)
			for name, do := range map[string]func() []error{
				"claims": func() (errs []error) {
					for _, a := range store.ClaimAll(t.Context(), r) {
						errs = append(errs, a.Err)
					}
					return errs
				},
				// Alone in its call, an INSERT into a table without that sort key would be a fine one.
				"a claim":     func() []error { return []error{store.ClaimAll(t.Context(), r[:1])[0].Err} },
				"completions": func() []error { return store.CompleteAll(t.Context(), bulkCompletions(r)) },
				"renewals":    func() []error { return store.RenewAll(t.Context(), bulkRenewals(r)) },
				"releases":    func() []error { return store.ReleaseAll(t.Context(), bulkReleases(r)) },
				"marks":       func() []error { return store.MarkAll(t.Context(), bulkMarks(r)) },
				"a mark":      func() []error { return store.MarkAll(t.Context(), bulkMarks(r[:1])) },
				"reads":       func() []error { return errorsOf(store.FindAll(t.Context(), bulkFinds(r))) },
				"a read":      func() []error { return errorsOf(store.FindAll(t.Context(), bulkFinds(r[:1]))) },
			} {
				for _, operation := range []string{"BatchExecuteStatement", "BatchGetItem", "GetItem", "PutItem", "UpdateItem", "DeleteItem"} {
					if test.fault != nil {
						proxy.Script(operation, slices.Repeat([]dynamotest.Fault{test.fault}, 100)...)
					}
				}
				for i, err := range do() {
					if !errors.Is(err, idempotency.ErrStoreUnusable) || strings.Contains(err.Error(), r[i].Key) {
						t.Errorf("%s: error %d is %v; want an ErrStoreUnusable in the same words for every key", name, i, err)
					}
				}
			}
		})
	}
}

// TestBulkTakeoverRace has two stores take over the same keys. Each key has one winner, and only it knows.
func TestBulkTakeoverRace(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	for round := range 5 {
		old := bulkClaims(fmt.Sprint("old", round), 200)
		for i := range old {
			old[i].Key += fmt.Sprint("/", round)
		}
		p.ClaimAll(t.Context(), old)
		var wg sync.WaitGroup
		answers := make([][]idempotency.ClaimAnswer, 2)
		for i := range answers {
			store := dynamostore.New(dynamotest.Client(t), p.table)
			requests := later(old, fmt.Sprint("new", i, "/"))
			for j := range requests {
				requests[j].Key = old[j].Key
			}
			wg.Go(func() { answers[i] = store.ClaimAll(t.Context(), requests) })
		}
		wg.Wait()
		for j := range old {
			a, b := answers[0][j], answers[1][j]
			if a.Err != nil || b.Err != nil || a.Claimed == b.Claimed || a.Entry.Owner != b.Entry.Owner || a.TookOver != a.Claimed || b.TookOver != b.Claimed {
				t.Fatalf("two claims of one key = %+v and %+v; want one granted, and the other refused by it", a, b)
			}
		}
	}
}

// TestBulkRounds has batches be claimed, completed, released and claimed again by three workers while requests and replies
// get lost. No key is two workers' at a time, and in the end every one is completed.
func TestBulkRounds(t *testing.T) {
	const keys = 150
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t, dynamotest.ShortRetries), layouts()[0].options)
	proxy.Random(11, func(chance *rand.Rand, _ string) dynamotest.Fault {
		switch n := chance.IntN(100); {
		case n < 5:
			return dynamotest.LoseReply
		case n < 8:
			return dynamotest.Drop
		case n < 10:
			return dynamotest.ServerError
		}
		return nil
	})
	var mu sync.Mutex
	holder := make(map[string]string) // by key, while its claim is known to be granted
	done := make(map[string]int)
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			chance := rand.New(rand.NewPCG(3, uint64(worker)))
			for round := range 12 {
				requests := bulkClaims(fmt.Sprint(worker, "/", round, "/"), keys)
				if round%2 == 1 {
					asked(requests)
				}
				chance.Shuffle(keys, func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
				requests = requests[:keys/2]
				var mine, undecided []idempotency.ClaimRequest
				for i, answer := range p.ClaimAll(t.Context(), requests) {
					r := requests[i]
					switch {
					case answer.Err != nil:
						undecided = append(undecided, r)
					case answer.Claimed:
						mu.Lock()
						if other := holder[r.Key]; other != "" {
							t.Errorf("%s is claimed by %s and by %s", r.Key, other, r.Owner)
						}
						if done[r.Key] > 0 {
							t.Errorf("%s is claimed and was completed", r.Key)
						}
						holder[r.Key] = r.Owner
						mu.Unlock()
						mine = append(mine, r)
					}
				}
				half := len(mine) / 2
				// From here on a key is free in the table, or completed, before anyone here knows.
				mu.Lock()
				for i, r := range mine {
					delete(holder, r.Key)
					if i < half {
						done[r.Key]++
					}
				}
				mu.Unlock()
				rest := append(mine[half:], undecided...)
				settled := func(do func(try int) []error) {
					for try := range 20 {
						if !slices.ContainsFunc(do(try), func(err error) bool { return err != nil }) {
							return
						}
					}
					t.Error("20 tries to settle have failed")
				}
				settled(func(int) []error { return p.CompleteAll(t.Context(), bulkCompletions(mine[:half])) })
				settled(func(try int) []error {
					errs := p.ReleaseAll(t.Context(), bulkReleases(rest))
					for i, err := range errs {
						if errors.Is(err, idempotency.ErrClaimLost) && (try > 0 || i >= len(mine)-half) {
							errs[i] = nil // released before, or an undecided claim that was none
						}
					}
					return errs
				})
			}
		})
	}
	wg.Wait()
	proxy.Random(1, nil)
	last := bulkClaims("last", keys)
	var mine []idempotency.ClaimRequest
	for i, answer := range p.ClaimAll(t.Context(), last) {
		if want := done[last[i].Key] == 0; answer.Err != nil || answer.Claimed != want {
			t.Errorf("last claim of %s = %+v; want claimed: %t", last[i].Key, answer, want)
		}
		if answer.Claimed {
			mine = append(mine, last[i])
		}
	}
	if len(mine) == keys {
		t.Error("nothing was completed in all those rounds")
	}
	for key, times := range done {
		if times != 1 {
			t.Errorf("%s was completed %d times; want once", key, times)
		}
	}
}
