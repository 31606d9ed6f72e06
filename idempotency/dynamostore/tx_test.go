package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// committer is a client without a server that notes the transactions it gets.
type committer struct {
	dynamostore.Client // nil: its other methods must not be called
	answer             func() error
	inputs             []*dynamodb.TransactWriteItemsInput
	releases           int
}

func (c *committer) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return &dynamodb.PutItemOutput{}, nil
}

func (c *committer) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return &dynamodb.UpdateItemOutput{}, nil
}

func (c *committer) DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	c.releases++
	return &dynamodb.DeleteItemOutput{}, nil
}

func (c *committer) TransactWriteItems(
	_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	c.inputs = append(c.inputs, in)
	if c.answer != nil {
		return nil, c.answer()
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func committing(t testing.TB, client dynamostore.Client, optFns ...func(*dynamostore.Options)) *idempotency.Guard {
	t.Helper()
	guard, err := idempotency.New("ns", dynamostore.New(client, "claims", optFns...))
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// collect does work that collects, and returns the error of the work's end.
func collect(t testing.TB, guard *idempotency.Guard, f func(tx *dynamostore.Transaction)) error {
	t.Helper()
	_, err := idempotency.Do(t.Context(), guard, "k", func(ctx context.Context) (struct{}, error) {
		f(dynamostore.Tx(ctx))
		return struct{}{}, nil
	})
	return err
}

func itemOf(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": s(id)}
}

func put(table, id string) types.Put {
	return types.Put{TableName: aws.String(table), Item: itemOf(id)}
}

func absent(table, id string) types.ConditionCheck {
	return types.ConditionCheck{TableName: aws.String(table), Key: itemOf(id), ConditionExpression: aws.String("attribute_not_exists(id)")}
}

func deletion(table, id string) types.Delete {
	return types.Delete{TableName: aws.String(table), Key: itemOf(id)}
}

// TestTxRefuses has what no transaction can hold. The error says so before there is a request, and the work fails even if
// it does not look at it.
func TestTxRefuses(t *testing.T) {
	sorted := func(o *dynamostore.Options) { o.KeyAttribute, o.SortKeyAttribute = "pk", "sk" }
	update := types.Update{TableName: aws.String("t"), Key: itemOf("1"), UpdateExpression: aws.String("SET a = :a")}
	large := put("t", "1")
	large.Item["text"] = s(strings.Repeat("x", 400*1024))
	cycle := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, 1)}
	cycle.Value[0] = cycle
	var missing *types.AttributeValueMemberS
	attribute := func(v types.AttributeValue) types.Put {
		return types.Put{TableName: aws.String("t"), Item: map[string]types.AttributeValue{"id": s("1"), "a": v}}
	}
	for _, test := range []struct {
		name    string
		options []func(*dynamostore.Options)
		collect func(tx *dynamostore.Transaction) error // the last error
		want    string
	}{
		{"hundredth", nil, func(tx *dynamostore.Transaction) (err error) {
			for i := range 100 {
				if err != nil {
					return errors.New("too early")
				}
				err = tx.Put(put("t", strconv.Itoa(i)))
			}
			return err
		}, "there are 99 actions already; want at most 99"},
		{"more than 4 MB", nil, func(tx *dynamostore.Transaction) (err error) {
			for i := range 11 {
				if err != nil {
					return errors.New("too early")
				}
				p := put("t", strconv.Itoa(i))
				p.Item["text"] = s(strings.Repeat("x", 399*1024))
				err = tx.Put(p)
			}
			return err
		}, "bytes with this one; want at most 4194304"},
		{"large item", nil, func(tx *dynamostore.Transaction) error { return tx.Put(large) }, "its Item has at least 409607 bytes; want at most 409600"},
		{"no table", nil, func(tx *dynamostore.Transaction) error { return tx.Delete(types.Delete{Key: itemOf("1")}) }, "its TableName is missing"},
		{"no item", nil, func(tx *dynamostore.Transaction) error { return tx.Put(types.Put{TableName: aws.String("t")}) }, "its Item is empty"},
		{"no key", nil, func(tx *dynamostore.Transaction) error { return tx.Delete(types.Delete{TableName: aws.String("t")}) }, "its Key is empty"},
		{"no update", nil, func(tx *dynamostore.Transaction) error {
			return tx.Update(types.Update{TableName: aws.String("t"), Key: itemOf("1")})
		}, "its UpdateExpression is missing"},
		{"no condition", nil, func(tx *dynamostore.Transaction) error {
			return tx.ConditionCheck(types.ConditionCheck{TableName: aws.String("t"), Key: itemOf("1")})
		}, "its ConditionExpression is missing"},
		{"nil value", nil, func(tx *dynamostore.Transaction) error { return tx.Put(attribute(nil)) }, `attribute "a" of its Item is a nil <nil>`},
		{"nil pointer", nil, func(tx *dynamostore.Transaction) error {
			return tx.Put(attribute(&types.AttributeValueMemberL{Value: []types.AttributeValue{missing}}))
		}, `attribute "a" of its Item is a nil *types.AttributeValueMemberS`},
		{"unknown type", nil, func(tx *dynamostore.Transaction) error { return tx.Put(attribute(&types.UnknownUnionMember{})) }, "want one of DynamoDB's types"},
		{"endless value", nil, func(tx *dynamostore.Transaction) error { return tx.Put(attribute(cycle)) }, "in more than 32 maps and lists"},
		{"twice by key", nil, func(tx *dynamostore.Transaction) error {
			return errors.Join(tx.Delete(deletion("t", "2")), tx.Update(update), tx.Delete(deletion("t", "1")))
		}, "the item is that of action 2, Update; want each item once"},
		{"put, then updated", nil, func(tx *dynamostore.Transaction) error {
			return errors.Join(tx.Put(put("t", "1")), tx.Update(update))
		}, "the item is that of action 1, Put"},
		{"updated, then put under its ARN", nil, func(tx *dynamostore.Transaction) error {
			return errors.Join(tx.Update(update), tx.Put(put("arn:aws:dynamodb:us-east-1:123456789012:table/t", "1")))
		}, "the item is that of action 1, Update"},
		{"put twice", nil, func(tx *dynamostore.Transaction) error {
			return errors.Join(tx.Put(put("t", "1")), tx.Put(put("t", "1")))
		}, "the item is that of action 1, Put"},
		{"put twice in a table whose key is known", nil, func(tx *dynamostore.Transaction) error {
			other := put("t", "1")
			other.Item["text"] = s("other")
			return errors.Join(tx.Put(put("t", "1")), tx.Delete(deletion("t", "2")), tx.Put(other))
		}, "the item is that of action 1, Put"},
		{"the claim", nil, func(tx *dynamostore.Transaction) error { return tx.Delete(deletion("claims", "ns#k")) },
			"the item is that of the work's own claim"},
		{"the claim, put", nil, func(tx *dynamostore.Transaction) error { return tx.Put(put("claims", "ns#k")) },
			"the item is that of the work's own claim"},
		{"the claim in a sorted table", []func(*dynamostore.Options){sorted}, func(tx *dynamostore.Transaction) error {
			return tx.Put(types.Put{TableName: aws.String("claims"), Item: map[string]types.AttributeValue{
				"pk": s("idempotency#ns"), "sk": s("ns#k"), "text": s("x")}})
		}, "the item is that of the work's own claim"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := &committer{}
			var got error
			err := collect(t, committing(t, client, test.options...), func(tx *dynamostore.Transaction) { got = test.collect(tx) })
			if got == nil || !strings.Contains(got.Error(), test.want) {
				t.Errorf("error is %v; want it to contain %q", got, test.want)
			}
			if !errors.Is(err, idempotency.ErrTransactionCancelled) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the work's error is %v; want ErrTransactionCancelled and %q", err, test.want)
			}
			if len(client.inputs) != 0 || client.releases != 1 {
				t.Errorf("%d transactions, %d releases; want 0, 1", len(client.inputs), client.releases)
			}
		})
	}
}

// TestTxAccepts has what looks like the same item twice and is not, or may not be.
func TestTxAccepts(t *testing.T) {
	other := put("t", "2")
	other.Item["text"] = s("1")
	for name, f := range map[string]func(tx *dynamostore.Transaction) error{
		"99 actions": func(tx *dynamostore.Transaction) error {
			var errs []error
			for i := range 99 {
				errs = append(errs, tx.Put(put("t", strconv.Itoa(i))))
			}
			return errors.Join(errs...)
		},
		"other tables": func(tx *dynamostore.Transaction) error {
			return errors.Join(tx.Put(put("t", "1")), tx.Put(put("u", "1")))
		},
		"other items": func(tx *dynamostore.Transaction) error {
			return errors.Join(tx.Delete(deletion("t", "1")), tx.Put(other))
		},
		"another's claim": func(tx *dynamostore.Transaction) error { return tx.Delete(deletion("claims", "ns#other")) },
		"key of other type": func(tx *dynamostore.Transaction) error {
			d := deletion("t", "1")
			d.Key["id"] = n(1)
			return errors.Join(tx.Put(put("t", "1")), tx.Delete(d))
		},
	} {
		client := &committer{}
		err := collect(t, committing(t, client), func(tx *dynamostore.Transaction) {
			if err := f(tx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if err != nil || len(client.inputs) != 1 {
			t.Errorf("%s: %v, %d transactions; want one", name, err, len(client.inputs))
		}
	}
}

// TestTxCopies changes all that was handed over, as work may that uses it again.
func TestTxCopies(t *testing.T) {
	var inputs []*dynamodb.TransactWriteItemsInput
	for _, change := range []bool{false, true} {
		table, expression := "t", "attribute_exists(id)"
		inner := &types.AttributeValueMemberB{Value: []byte("b")}
		set, texts, numbers := [][]byte{[]byte("s")}, []string{"s"}, []string{"1"}
		item := map[string]types.AttributeValue{
			"id": s("1"), "list": &types.AttributeValueMemberL{Value: []types.AttributeValue{inner, &types.AttributeValueMemberNULL{Value: true}}},
			"map": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"in": inner, "yes": &types.AttributeValueMemberBOOL{Value: true}}},
			"bs":  &types.AttributeValueMemberBS{Value: set}, "ss": &types.AttributeValueMemberSS{Value: texts}, "ns": &types.AttributeValueMemberNS{Value: numbers},
		}
		names, values, key := map[string]string{"#a": "a"}, map[string]types.AttributeValue{":a": n(1)}, itemOf("2")
		give := func(tx *dynamostore.Transaction) error {
			return errors.Join(
				tx.Put(types.Put{TableName: &table, Item: item, ConditionExpression: &expression, ExpressionAttributeNames: names, ExpressionAttributeValues: values}),
				tx.Update(types.Update{TableName: &table, Key: key, UpdateExpression: &expression, ExpressionAttributeNames: names, ExpressionAttributeValues: values}))
		}
		client := &committer{}
		if err := collect(t, committing(t, client), func(tx *dynamostore.Transaction) {
			if err := give(tx); err != nil {
				t.Error(err)
			}
			if change {
				table, expression = "changed", "changed"
				inner.Value[0], set[0][0], texts[0], numbers[0] = 'x', 'x', "x", "2"
				item["id"], names["#a"], values[":a"], key["id"] = s("x"), "x", n(2), s("x")
			}
		}); err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, client.inputs...)
	}
	ignore := cmpopts.IgnoreUnexported(types.TransactWriteItem{}, types.Put{}, types.Update{}, types.AttributeValueMemberS{},
		types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberL{}, types.AttributeValueMemberM{},
		types.AttributeValueMemberBOOL{}, types.AttributeValueMemberNULL{}, types.AttributeValueMemberSS{}, types.AttributeValueMemberNS{},
		types.AttributeValueMemberBS{})
	if diff := cmp.Diff(inputs[0].TransactItems[:2], inputs[1].TransactItems[:2], ignore); diff != "" {
		t.Errorf("the transaction has followed (-want +got):\n%s", diff)
	}
	if got := *inputs[0].ClientRequestToken; len(got) != 26 || got == *inputs[1].ClientRequestToken {
		t.Errorf("client token is %q; want the owner, another one for each claim", got)
	}
}

// TestTxConcurrently has goroutines of one work collect.
func TestTxConcurrently(t *testing.T) {
	client := &committer{}
	_, err := idempotency.Do(t.Context(), committing(t, client), "k", func(ctx context.Context) (struct{}, error) {
		var wg sync.WaitGroup
		for i := range 99 {
			wg.Go(func() {
				if err := dynamostore.Tx(ctx).Put(put("t", strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return struct{}{}, nil
	})
	if err != nil || len(client.inputs) != 1 || len(client.inputs[0].TransactItems) != 100 {
		t.Errorf("%v, %d transactions; want one of 100 actions", err, len(client.inputs))
	}
}

// TestTxWithout asks for a transaction where there is none. It is never nil, and its methods say why.
func TestTxWithout(t *testing.T) {
	guard := committing(t, &committer{})
	memory, err := idempotency.New("ns", idempotency.NewMemoryStore())
	if err != nil {
		t.Fatal(err)
	}
	keyless, err := idempotency.New("ns", dynamostore.New(&committer{}, "claims"), func(o *idempotency.Options) {
		o.MissingKey = idempotency.MissingKeyRunsUnprotected
	})
	if err != nil {
		t.Fatal(err)
	}
	within := func(g *idempotency.Guard, key string, ctx context.Context, f func(context.Context)) {
		_, err := idempotency.Do(ctx, g, key, func(ctx context.Context) (struct{}, error) {
			f(ctx)
			return struct{}{}, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	var kept context.Context
	var tx *dynamostore.Transaction
	within(guard, "kept", t.Context(), func(ctx context.Context) { kept, tx = ctx, dynamostore.Tx(ctx) })
	check := func(what string, tx *dynamostore.Transaction, want string) {
		t.Helper()
		update := types.Update{TableName: aws.String("t"), Key: itemOf("1"), UpdateExpression: aws.String("SET a = b")}
		check := types.ConditionCheck{TableName: aws.String("t"), Key: itemOf("1"), ConditionExpression: aws.String("a = b")}
		for i, err := range []error{tx.Put(put("t", "1")), tx.Update(update), tx.Delete(deletion("t", "1")), tx.ConditionCheck(check)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error of method %d is %v; want it to contain %q", what, i, err, want)
			}
		}
	}
	check("no guard", dynamostore.Tx(t.Context()), "is not that of guarded work")
	check("the work has ended", dynamostore.Tx(kept), `the work of "kept" has ended`)
	check("the work has ended, asked before", tx, "the work has ended; want it before the work returns")
	within(memory, "m", t.Context(), func(ctx context.Context) {
		check("another store", dynamostore.Tx(ctx), "store *idempotency.MemoryStore has no transactions")
	})
	within(keyless, "", t.Context(), func(ctx context.Context) {
		check("no key", dynamostore.Tx(ctx), "the work runs unprotected")
	})
	within(guard, "outer", t.Context(), func(ctx context.Context) {
		within(memory, "inner", ctx, func(ctx context.Context) {
			check("the innermost work's store is another", dynamostore.Tx(ctx), "has no transactions")
		})
		if err := dynamostore.Tx(ctx).Put(put("t", "1")); err != nil {
			t.Errorf("the outer work's transaction: %v", err)
		}
	})
}

// wrapper is a store that wraps another.
type wrapper struct {
	idempotency.Store
	wrap func(idempotency.Transaction) idempotency.Transaction
}

func (w wrapper) Begin(r idempotency.BeginRequest) idempotency.Transaction {
	return w.wrap(w.Store.(idempotency.Transactor).Begin(r))
}

type wrapped struct{ idempotency.Transaction }

func (w wrapped) Unwrap() idempotency.Transaction { return w.Transaction }

func TestTxThroughWrappers(t *testing.T) {
	opaque := struct{ idempotency.Transaction }{}
	for _, test := range []struct {
		name string
		wrap func(idempotency.Transaction) idempotency.Transaction
		want string
	}{
		{"handed on", func(t idempotency.Transaction) idempotency.Transaction { return t }, ""},
		{"wrapped twice", func(t idempotency.Transaction) idempotency.Transaction { return wrapped{wrapped{t}} }, ""},
		{"none", func(idempotency.Transaction) idempotency.Transaction { return nil }, "has no transactions"},
		{"wrapped without Unwrap", func(t idempotency.Transaction) idempotency.Transaction {
			opaque.Transaction = t
			return opaque
		}, "want those of a *dynamostore.Store"},
	} {
		client := &committer{}
		guard, err := idempotency.New("ns", wrapper{dynamostore.New(client, "claims"), test.wrap})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = idempotency.Do(t.Context(), guard, "k", func(ctx context.Context) (struct{}, error) {
			err := dynamostore.Tx(ctx).Put(put("t", "1"))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: error is %v; want %q", test.name, err, test.want)
			}
			return struct{}{}, err
		})
		if got := len(client.inputs) == 1; got != (test.want == "") {
			t.Errorf("%s: %d transactions", test.name, len(client.inputs))
		}
	}
}

// TestTxConflictThatLasts gives up after some three seconds, and tells of each reason.
func TestTxConflictThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &committer{answer: func() error {
			return fmt.Errorf("operation error: %w", &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{
				{Code: aws.String("TransactionConflict"), Message: aws.String("Transaction is ongoing for the item")},
				{Code: aws.String("None")}, {Code: aws.String("ThrottlingError")},
			}})
		}}
		begin := time.Now()
		err := collect(t, committing(t, client), func(tx *dynamostore.Transaction) {
			if err := errors.Join(tx.Put(put("t", "1")), tx.Put(put("t", "2"))); err != nil {
				t.Error(err)
			}
		})
		took := time.Since(begin)
		want := `idempotency: transaction of "k": idempotency: transaction was cancelled: table "claims", id="ns#k": ` +
			`action 1, Put on table "t": TransactionConflict (Transaction is ongoing for the item); the completion: ThrottlingError`
		if err == nil || err.Error() != want || !errors.Is(err, idempotency.ErrTransactionCancelled) {
			t.Errorf("error is %v; want %s", err, want)
		}
		if took < 3*time.Second || took > 4*time.Second || len(client.inputs) < 10 || client.releases != 1 {
			t.Errorf("gave up after %v and %d transactions, with %d releases; want some 3s, at least 10, and 1", took, len(client.inputs), client.releases)
		}
		for _, in := range client.inputs {
			if in != client.inputs[0] {
				t.Fatal("a request was built anew")
			}
		}
	})
}

// TestCancelledByTheWorksCondition tells whose condition failed, and what stood in its way where the action asks for that.
func TestCancelledByTheWorksCondition(t *testing.T) {
	g := newLedger(t, layouts()[0])
	if _, err := g.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &g.accounts, Item: itemOf("entry")}); err != nil {
		t.Fatal(err)
	}
	_, err := g.do(t.Context(), g.guard)
	var cancelled *dynamostore.CancelledError
	if !errors.As(err, &cancelled) || !errors.Is(err, idempotency.ErrTransactionCancelled) {
		t.Fatalf("error is %v; want a *CancelledError", err)
	}
	var sdk *types.TransactionCanceledException
	if !errors.As(err, &sdk) {
		t.Errorf("error is %v; want DynamoDB's in it", err)
	}
	want := []dynamostore.CancellationReason{{
		Action: 0, Name: fmt.Sprintf("action 1, Put on table %q", g.accounts), Code: "ConditionalCheckFailed",
		Message: "The conditional request failed", Item: itemOf("entry"),
	}}
	if diff := cmp.Diff(want, cancelled.Reasons, cmpopts.IgnoreUnexported(types.AttributeValueMemberS{})); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	g.expectRequests(t, map[string]int{"PutItem": 1, "TransactWriteItems": 1, "DeleteItem": 1})
	if balance := g.account(t, "balance"); len(balance) > 0 {
		t.Errorf("balance is %v; want none", balance)
	}
	if item := g.item(t, "ns#k"); item != nil {
		t.Errorf("the claim is %v; want it released", attributes(item))
	}
}

// TestCancelledAsAWhole has what only the server can tell.
func TestCancelledAsAWhole(t *testing.T) {
	g := newLedger(t, layouts()[0])
	second := g.entry()
	second.Item = itemOf("entry")
	for _, test := range []struct {
		name string
		add  func(tx *dynamostore.Transaction) error
		want string
	}{
		{"the same item, by attributes that only the table knows to be its key",
			func(tx *dynamostore.Transaction) error { return errors.Join(tx.Put(g.entry()), tx.Put(second)) },
			"Transaction request cannot include multiple operations on one item"},
		{"no such table", func(tx *dynamostore.Transaction) error { return tx.Put(put("missing", "1")) }, "dynamodb:TransactWriteItems on 2 items"},
	} {
		err := collect(t, g.guard, func(tx *dynamostore.Transaction) {
			if err := test.add(tx); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		})
		if !errors.Is(err, idempotency.ErrTransactionCancelled) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v; want ErrTransactionCancelled and %q", test.name, err, test.want)
		}
		if item := g.item(t, "ns#k"); item != nil {
			t.Errorf("%s: the claim is %v; want it released", test.name, attributes(item))
		}
	}
}

// In Lambda an owner ends with the function's name, and a client token has 36 characters at most.
func TestTxTokenInLambda(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", strings.Repeat("f", 64))
	client := &committer{}
	err := collect(t, committing(t, client), func(tx *dynamostore.Transaction) {
		if err := tx.Put(put("accounts", "a")); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range client.inputs {
		if token := aws.ToString(in.ClientRequestToken); len(token) != 26 {
			t.Errorf("client token is %q, want one of 26 characters", token)
		}
	}
	if len(client.inputs) != 1 {
		t.Errorf("%d transactions, want 1", len(client.inputs))
	}
}

// BenchmarkCommit compares the commit of one write with a plain completion and a write of its own.
func BenchmarkCommit(b *testing.B) {
	client := dynamotest.Client(b)
	g := &ledger{planter: newPlanter(b, client, layouts()[0].options), accounts: dynamotest.Table(b, client)}
	guard, err := idempotency.New("ns", g.Store)
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	run := func(work func(ctx context.Context, id string) error) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				i++
				id := strconv.Itoa(i)
				_, err := idempotency.Do(b.Context(), guard, id, func(ctx context.Context) (struct{}, error) { return struct{}{}, work(ctx, id) })
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("completion", run(func(context.Context, string) error { return nil }))
	b.Run("write and completion", run(func(ctx context.Context, id string) error {
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &g.accounts, Item: itemOf(id)})
		return err
	}))
	b.Run("transaction", run(func(ctx context.Context, id string) error { return dynamostore.Tx(ctx).Put(put(g.accounts, id)) }))
}
