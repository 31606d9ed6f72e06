package dynamostore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// bulkMarks returns the marks of work for which those claims would have been made.
func bulkMarks(claims []idempotency.ClaimRequest) []idempotency.MarkRequest {
	requests := make([]idempotency.MarkRequest, len(claims))
	for i, c := range bulkCompletions(claims) {
		requests[i] = idempotency.MarkRequest{CompleteRequest: c, Fingerprint: claims[i].Fingerprint, Skew: claims[i].Skew}
	}
	return requests
}

func bulkFinds(claims []idempotency.ClaimRequest) []idempotency.FindRequest {
	requests := make([]idempotency.FindRequest, len(claims))
	for i, r := range claims {
		requests[i] = idempotency.FindRequest{Key: r.Key, Now: r.Now, Skew: r.Skew}
	}
	return requests
}

func errorsOf(answers []idempotency.FindAnswer) []error {
	errs := make([]error, len(answers))
	for i, a := range answers {
		errs[i] = a.Err
	}
	return errs
}

// found counts answers by what they say.
func found(answers []idempotency.FindAnswer) map[string]int {
	counts := make(map[string]int)
	for _, a := range answers {
		switch {
		case a.Err != nil && isUndecided(a.Err):
			counts["undecided"]++
		case a.Err != nil:
			counts[a.Err.Error()]++
		default:
			counts[a.Entry.Status.String()]++
		}
	}
	return counts
}

// TestMarkRequests counts what reads and marks cost when nothing goes wrong, one at a time and for 1,000 records.
func TestMarkRequests(t *testing.T) {
	const n = 1000
	type counts = map[string]int
	for _, l := range layouts()[:2] {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			proxy := dynamotest.NewProxy(t)
			p := newPlanter(t, proxy.Client(t), l.options)
			proxy.Requests()
			expect := func(what string, want, got, requests counts) {
				t.Helper()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("answers of %s (-want +got):\n%s", what, diff)
				}
				if diff := cmp.Diff(requests, proxy.Requests()); diff != "" {
					t.Errorf("requests of %s (-want +got):\n%s", what, diff)
				}
			}
			one, read, mark := []idempotency.ClaimRequest{claimRequest("k", "a")}, counts{"GetItem": 1}, counts{"UpdateItem": 1}
			expect("a read", counts{"ABSENT": 1}, found(p.FindAll(t.Context(), bulkFinds(one))), read)
			expect("a mark", counts{"done": 1}, summaryOf(p.MarkAll(t.Context(), bulkMarks(one))), mark)
			expect("a mark sent twice", counts{"done": 1}, summaryOf(p.MarkAll(t.Context(), bulkMarks(one))), mark)
			expect("a replay", counts{"COMPLETED": 1}, found(p.FindAll(t.Context(), bulkFinds(one))), read)
			one[0].Owner = "b"
			expect("a second run", counts{"completed": 1}, summaryOf(p.MarkAll(t.Context(), bulkMarks(one))), mark)

			claims := bulkClaims("a", n)
			expect("reads", counts{"ABSENT": n}, found(p.FindAll(t.Context(), bulkFinds(claims))), counts{"BatchGetItem": 10})
			expect("marks", counts{"done": n}, summaryOf(p.MarkAll(t.Context(), bulkMarks(claims))), counts{"BatchExecuteStatement": 40})
			expect("replays", counts{"COMPLETED": n}, found(p.FindAll(t.Context(), bulkFinds(claims))), counts{"BatchGetItem": 10})
			expect("second runs", counts{"completed": n}, summaryOf(p.MarkAll(t.Context(), bulkMarks(bulkClaims("b", n)))),
				counts{"BatchExecuteStatement": 40, "BatchGetItem": 10})
			expect("marks after the expiry", counts{"done": 20}, summaryOf(p.MarkAll(t.Context(), bulkMarks(after(2*time.Hour, "c", 20)))),
				counts{"BatchExecuteStatement": 1, "BatchGetItem": 1, "UpdateItem": 20})
		})
	}
}

// after returns claims of n keys that are made so much later.
func after(d time.Duration, owner string, n int) []idempotency.ClaimRequest {
	requests := bulkClaims(owner, n)
	for i := range requests {
		r := &requests[i]
		r.Now = now.Add(d)
		r.Lease, r.Expiry = r.Now.Add(time.Minute), r.Now.Add(time.Hour)
	}
	return requests
}

// TestMarkItems has marks of one and of many leave the item that a claim and its completion leave, in every layout, whatever
// was there before.
func TestMarkItems(t *testing.T) {
	client := dynamotest.Client(t)
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, client, l.options)
			for name, entry := range map[string]idempotency.Entry{
				"absent":     {},
				"expired":    {Status: idempotency.Completed, Owner: "o", Fingerprint: "old", Expiry: now.Add(-time.Hour), Data: []byte("7")},
				"lease over": {Status: idempotency.InProgress, Owner: "o", Fingerprint: "old", Lease: now.Add(-time.Hour), Expiry: now.Add(time.Hour), Attempts: 3},
				"released":   {Status: idempotency.InProgress, Lease: time.UnixMilli(0), Expiry: now.Add(time.Hour), Attempts: 3},
			} {
				for _, full := range []bool{true, false} {
					claims := make([]idempotency.ClaimRequest, 5)
					for i := range claims {
						claims[i] = claimRequest(fmt.Sprintf("orders#%s/%t/%d", name, full, i), "me")
						if !full {
							claims[i].Fingerprint = ""
						}
						if entry.Status != idempotency.Absent {
							p.Plant(t, claims[i].Key, entry)
						}
					}
					marks := bulkMarks(claims)
					for i := range marks {
						if marks[i].Data = nil; full {
							marks[i].Data = []byte(`{"a":1}`)
						}
					}
					mustClaim(t, p, claims[0])
					errs := []error{p.Complete(t.Context(), marks[0].CompleteRequest)}
					errs = append(errs, p.MarkAll(t.Context(), marks[1:2])...)
					errs = append(errs, p.MarkAll(t.Context(), marks[2:])...)
					if err := errors.Join(errs...); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					key := func(i int) map[string]any {
						item := attributes(p.item(t, claims[i].Key))
						delete(item, l.options.KeyAttribute)
						delete(item, l.options.SortKeyAttribute)
						return item
					}
					for i := range marks[1:] {
						if diff := cmp.Diff(key(0), key(i+1)); diff != "" {
							t.Errorf("%s, full is %t: item %d (-completed +marked):\n%s", name, full, i+1, diff)
						}
					}
				}
			}
		})
	}
}

// TestMarkResultTooLarge marks without the result rather than not at all.
func TestMarkResultTooLarge(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	// The server of the tests has no such limit for statements. DynamoDB has.
	store := dynamostore.New(&meddler{Client: p.client, statement: func(_, i int) types.BatchStatementErrorCodeEnum {
		if i > 0 {
			return ""
		}
		return types.BatchStatementErrorCodeEnumValidationError
	}}, p.table)
	for _, n := range []int{1, 3} {
		marks := bulkMarks(bulkClaims(fmt.Sprint("a", n), n))
		for i := range marks {
			marks[i].Key += fmt.Sprint("/", n)
		}
		marks[0].Data = text(400*1024 - 150) // as the server finds
		if n > 1 {
			marks[1].Data = text(400*1024 + 1) // as is found without it
		}
		want := map[string]int{"no result": min(n, 2), "done": n - min(n, 2)}
		if n == 1 {
			delete(want, "done")
		}
		if diff := cmp.Diff(want, summaryOf(store.MarkAll(t.Context(), marks))); diff != "" {
			t.Errorf("%d marks (-want +got):\n%s", n, diff)
		}
		for i, a := range p.FindAll(t.Context(), []idempotency.FindRequest{{Key: marks[0].Key, Now: now}, {Key: marks[n-1].Key, Now: now}}) {
			if hasData := i == 1 && n > 1; a.Entry.Status != idempotency.Completed || (a.Entry.Data != nil) != hasData {
				t.Errorf("%d marks: entry %d is %v with %d bytes, error %v; want it completed, with a result: %t",
					n, i, a.Entry.Status, len(a.Entry.Data), a.Err, hasData)
			}
		}
	}
}

// TestMarkFaults has single reads and marks whose replies get lost, and a server that does not say what refused a mark.
func TestMarkFaults(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t, dynamotest.ShortRetries)
	for _, test := range []struct {
		name      string
		operation string
		faults    []dynamotest.Fault
		held      time.Duration // until when another holds the key from now, 0: it does not
		find      string
		mark      string
		requests  map[string]int // of the mark
	}{
		{"lost reply of a read", "GetItem", []dynamotest.Fault{dynamotest.LoseReply}, 0, "ABSENT", "done", map[string]int{"UpdateItem": 1}},
		{"lost reply", "UpdateItem", []dynamotest.Fault{dynamotest.LoseReply}, 0, "ABSENT", "done", map[string]int{"UpdateItem": 2}},
		{"lost replies", "UpdateItem", []dynamotest.Fault{dynamotest.LoseReply, dynamotest.LoseReply}, 0, "ABSENT", "done",
			map[string]int{"UpdateItem": 3}},
		{"lost request", "UpdateItem", []dynamotest.Fault{dynamotest.Drop}, 0, "ABSENT", "done", map[string]int{"UpdateItem": 2}},
		{"refused without the item", "UpdateItem", []dynamotest.Fault{dynamotest.HideItem}, time.Minute, "INPROGRESS", "lost",
			map[string]int{"UpdateItem": 1, "GetItem": 1}},
		{"lost reply, refused without the item", "UpdateItem", []dynamotest.Fault{dynamotest.LoseReply, dynamotest.HideItem}, 0,
			"ABSENT", "done", map[string]int{"UpdateItem": 2, "GetItem": 1}},
		{"for good", "UpdateItem", slices.Repeat([]dynamotest.Fault{dynamotest.ServerError}, 10), 0, "ABSENT", "undecided",
			map[string]int{"UpdateItem": 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlanter(t, client, layouts()[0].options)
			claims := []idempotency.ClaimRequest{claimRequest("k", "me")}
			if test.held > 0 {
				other := claimRequest("k", "other")
				other.Lease = now.Add(test.held)
				mustClaim(t, p, other)
			}
			proxy.Script(test.operation, test.faults...)
			if diff := cmp.Diff(map[string]int{test.find: 1}, found(p.FindAll(t.Context(), bulkFinds(claims)))); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			proxy.Requests()
			if diff := cmp.Diff(map[string]int{test.mark: 1}, summaryOf(p.MarkAll(t.Context(), bulkMarks(claims)))); diff != "" {
				t.Errorf("mark (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.requests, proxy.Requests()); diff != "" {
				t.Errorf("requests of the mark (-want +got):\n%s", diff)
			}
			proxy.Script(test.operation)
		})
	}
}

// TestFindDenied has the function not be allowed to read many. It says so once, and reads one at a time.
func TestFindDenied(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	var log bytes.Buffer
	store := dynamostore.New(proxy.Client(t), p.table, func(o *dynamostore.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	finds := bulkFinds(bulkClaims("a", 5))
	finds[4].Key = strings.Repeat("k", 3000) // which no read can have
	proxy.Script("BatchGetItem", dynamotest.Fail("AccessDeniedException", "not authorized to perform: dynamodb:BatchGetItem"))
	for _, want := range []map[string]int{{"BatchGetItem": 1, "GetItem": 5}, {"GetItem": 5}} {
		proxy.Requests()
		if diff := cmp.Diff(map[string]int{"ABSENT": 4, "undecided": 1}, found(store.FindAll(t.Context(), finds))); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, proxy.Requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "reads are one call each") {
		t.Errorf("log is %q; want one line that says it", log.String())
	}
}

// TestMarkForeignItems has items that no layout knows. Their work neither begins nor is marked, and they stay as they are.
func TestMarkForeignItems(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	for _, n := range []int{1, 3} {
		claims := bulkClaims("a", n)
		for i := range claims {
			claims[i].Key += fmt.Sprint("/", n)
		}
		item := p.key(claims[0].Key)
		item["status"] = s("DONE")
		p.put(t, item)
		before := attributes(p.item(t, claims[0].Key))
		for what, err := range map[string]error{
			"read": p.FindAll(t.Context(), bulkFinds(claims))[0].Err, "mark": p.MarkAll(t.Context(), bulkMarks(claims))[0],
		} {
			if !isUndecided(err) || !strings.Contains(err.Error(), `attribute "status" is "DONE"`) {
				t.Errorf("%s of %d: error is %v; want what was found", what, n, err)
			}
		}
		if diff := cmp.Diff(before, attributes(p.item(t, claims[0].Key))); diff != "" {
			t.Errorf("item after that (-want +got):\n%s", diff)
		}
	}
}

// TestHandlerReadsThenMarks is what a message costs from the event to the answer: a read and a write that run it, a read that
// replays it, a read that fails it. A crash leaves nothing, and an earlier claim is in progress until its lease ends.
func TestHandlerReadsThenMarks(t *testing.T) {
	c := newConsumer(t, func(o *idempotency.Options) { o.ReadThenMark = true })
	const left = time.Minute
	c.deliver("m1", left, batch.Succeeded, true, map[string]int{"GetItem": 1, "UpdateItem": 1})
	c.deliver("m1", left, batch.Replayed, false, map[string]int{"GetItem": 1})
	c.work = func() error { return errors.New("no") }
	c.deliver("m2", left, batch.Failed, true, map[string]int{"GetItem": 1})
	c.work = nil
	c.deliver("m2", left, batch.Succeeded, true, map[string]int{"GetItem": 1, "UpdateItem": 1})

	// Two deliveries at the same time both run.
	c.work = func() error {
		c.work = nil
		c.proxy.Requests()
		c.deliver("m3", left, batch.Succeeded, true, map[string]int{"GetItem": 1, "UpdateItem": 1})
		return nil
	}
	c.deliver("m3", left, batch.Succeeded, true, map[string]int{"UpdateItem": 1})
	c.deliver("m3", left, batch.Replayed, false, map[string]int{"GetItem": 1})

	c.proxy.Script("UpdateItem", dynamotest.LoseReply)
	c.deliver("m4", left, batch.Succeeded, true, map[string]int{"GetItem": 1, "UpdateItem": 2})
	c.proxy.Script("GetItem", dynamotest.Fail("AccessDeniedException", "no"))
	c.deliver("m5", left, batch.Failed, false, map[string]int{"GetItem": 1})
	c.proxy.Script("GetItem", dynamotest.DelayReply(920*time.Millisecond))
	c.deliver("m6", time.Second, batch.Skipped, false, map[string]int{"GetItem": 1})
}

// TestFindKeys has keys that cannot be read with others: one that DynamoDB does not take, and one that the SDK sends as
// another. They are read alone, and the others are not.
func TestFindKeys(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	claims := bulkClaims("a", 5)
	claims[1].Key, claims[3].Key = "orders#\xff", strings.Repeat("k", 3000)
	for i, claim := range claims {
		if err := p.MarkAll(t.Context(), bulkMarks([]idempotency.ClaimRequest{claim}))[0]; isUndecided(err) != (i == 3) {
			t.Fatalf("mark %d: %v", i, err)
		}
	}
	proxy.Requests()
	if diff := cmp.Diff(map[string]int{"COMPLETED": 4, "undecided": 1}, found(p.FindAll(t.Context(), bulkFinds(claims)))); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"BatchGetItem": 1, "GetItem": 2}, proxy.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// inputs is a client that keeps whether reads are consistent.
type inputs struct {
	dynamostore.Client
	consistent []bool
}

func (c *inputs) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, optFns ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	c.consistent = append(c.consistent, aws.ToBool(in.ConsistentRead))
	return c.Client.GetItem(ctx, in, optFns...)
}

func (c *inputs) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, optFns ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	for _, keys := range in.RequestItems {
		c.consistent = append(c.consistent, aws.ToBool(keys.ConsistentRead))
	}
	return c.Client.BatchGetItem(ctx, in, optFns...)
}

// TestFindIsConsistent has reads see what was marked before them.
func TestFindIsConsistent(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
	client := &inputs{Client: p.client}
	store := dynamostore.New(client, p.table)
	store.FindAll(t.Context(), bulkFinds(bulkClaims("a", 1)))
	store.FindAll(t.Context(), bulkFinds(bulkClaims("a", 2)))
	if diff := cmp.Diff([]bool{true, true}, client.consistent); diff != "" {
		t.Errorf("consistent (-want +got):\n%s", diff)
	}
}

// TestMarkSortKey has a table without the sort key: no mark makes an item in it. Where the table has it, one read tells, and
// marks go together.
func TestMarkSortKey(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	client := proxy.Client(t)
	plain := newPlanter(t, client, layouts()[0].options)
	wrong := dynamostore.New(client, plain.table, func(o *dynamostore.Options) { o.SortKeyAttribute = "sk" })
	for i, err := range wrong.MarkAll(t.Context(), bulkMarks(bulkClaims("a", 26))) { // the last would be alone in its call
		if !errors.Is(err, idempotency.ErrStoreUnusable) {
			t.Errorf("mark %d: error is %v; want an ErrStoreUnusable", i, err)
		}
	}
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(plain.table)})
	if err != nil || len(out.Items) > 0 {
		t.Errorf("the table has %d items, error %v; want none", len(out.Items), err)
	}

	sorted := newPlanter(t, client, layouts()[1].options)
	for _, want := range []map[string]int{{"UpdateItem": 5}, {"GetItem": 1, "BatchExecuteStatement": 1}} {
		proxy.Requests()
		claims := bulkClaims("a", 5)
		for i := range claims {
			claims[i].Key += fmt.Sprint(len(want))
		}
		if len(want) > 1 {
			sorted.FindAll(t.Context(), bulkFinds(claims[:1]))
		}
		if diff := cmp.Diff(map[string]int{"done": 5}, summaryOf(sorted.MarkAll(t.Context(), bulkMarks(claims)))); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, proxy.Requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
}

// TestMarkReleasedMeanwhile has a server that does not say what refused a mark, and a key that is free when that is read. It
// is open then what happened, and the next try marks it.
func TestMarkReleasedMeanwhile(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	mustClaim(t, p, claimRequest("k", "other"))
	proxy.Script("UpdateItem", dynamotest.HideItem)
	proxy.Script("GetItem", func(x *dynamotest.Exchange) {
		if err := p.Release(t.Context(), idempotency.ReleaseRequest{Key: "k", Owner: "other", Now: now}); err != nil {
			t.Error(err)
		}
		x.Pass()
	})
	for _, want := range []string{"undecided", "done"} {
		got := summaryOf(p.MarkAll(t.Context(), bulkMarks([]idempotency.ClaimRequest{claimRequest("k", "me")})))
		if diff := cmp.Diff(map[string]int{want: 1}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	}
}
