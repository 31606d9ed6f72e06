package dynamostore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// forms are the two forms of a result, on one table.
func forms(t testing.TB) (p planter, stores map[string]*dynamostore.Store) {
	client := dynamotest.Client(t)
	p = newPlanter(t, client, layouts()[0].options)
	native := func(o *dynamostore.Options) { o.NativeData = true }
	return p, map[string]*dynamostore.Store{"text": p.Store, "native": dynamostore.New(client, p.table, native)}
}

// TestMigration has a table in which two functions keep results in two forms. Each replays what the other has stored,
// with the same value and type.
func TestMigration(t *testing.T) {
	type order struct {
		ID     int64    `json:"id"`
		Total  float64  `json:"total"`
		Name   string   `json:"name"`
		Tags   []string `json:"tags"`
		Parent *order   `json:"parent"`
		Empty  struct{} `json:"empty"`
	}
	_, stores := forms(t)
	for writer, from := range stores {
		for reader, to := range stores {
			t.Run(writer+" to "+reader, func(t *testing.T) {
				replays(t, from, to, order{ID: 1<<53 + 1, Total: 0.1, Name: "ä\x00\u2028", Tags: []string{}, Parent: &order{}})
				replays(t, from, to, "done")
				replays(t, from, to, "4711")
				replays(t, from, to, `{"a":1}`)
				replays(t, from, to, "")
				replays(t, from, to, int64(-1<<63))
				replays(t, from, to, uint64(1<<64-1))
				replays(t, from, to, 1e100)
				replays(t, from, to, false)
				replays(t, from, to, []byte{0, 0xff})
				replays(t, from, to, []string{})
				replays(t, from, to, map[string]int{"b": 1, "a": 2})
				replays[*order](t, from, to, nil)
				replays[any](t, from, to, nil)
			})
		}
	}
}

func replays[R any](t *testing.T, from, to idempotency.Store, want R) {
	t.Helper()
	for i, store := range []idempotency.Store{from, to} {
		guard, err := idempotency.New("migration", store)
		if err != nil {
			t.Fatal(err)
		}
		result, err := idempotency.Do(t.Context(), guard, t.Name()+cmp.Diff(nil, want), func(context.Context) (R, error) { return want, nil })
		if diff := cmp.Diff(want, result.Value); diff != "" || err != nil || result.Replayed != (i == 1) {
			t.Errorf("call %d: replayed is %t, error is %v, value (-want +got):\n%s", i+1, result.Replayed, err, diff)
		}
	}
}

// TestPlantedResults has what Powertools for TypeScript stores, which gives the value of a result to the SDK's marshaller.
func TestPlantedResults(t *testing.T) {
	p, stores := forms(t)
	for want, value := range map[string]types.AttributeValue{
		`{"ok":true,"orders":[1,{"total":2.5}]}`: &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"ok": &types.AttributeValueMemberBOOL{Value: true},
			"orders": &types.AttributeValueMemberL{Value: []types.AttributeValue{
				n(1), &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"total": &types.AttributeValueMemberN{Value: "2.5"}}},
			}},
		}},
		`"done"`:                   s("done"),
		`123`:                      s("123"), // a string of TypeScript's, or JSON text of Python's: the latter is taken
		`1e3`:                      s("1e3"),
		`-12345678901234567890`:    &types.AttributeValueMemberN{Value: "-12345678901234567890"},
		`["a","b"]`:                &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
		`null`:                     &types.AttributeValueMemberNULL{Value: true},
		`"\"half"`:                 s(`"half`),
		`[{"a":[{}]}, "as it is"]`: s(`[{"a":[{}]}, "as it is"]`),
	} {
		item := p.key(want)
		item["status"], item["expiration"], item["data"] = s("COMPLETED"), n(now.Add(time.Hour).Unix()), value
		p.put(t, item)
		for name, store := range stores {
			result, err := store.Claim(t.Context(), claimRequest(want, "mine"))
			if err != nil || result.Claimed || string(result.Entry.Data) != want {
				t.Errorf("%s: Claim = %+v with data %s, %v; want it refused with %s", name, result, result.Entry.Data, err, want)
			}
		}
	}
}

// TestNativeDataNotStored completes without a result that native data cannot keep, whoever finds that out.
func TestNativeDataNotStored(t *testing.T) {
	proxy := dynamotest.NewProxy(t)
	native := layouts()[0].options
	native.NativeData = true
	p := newPlanter(t, proxy.Client(t), native)
	for _, test := range []struct {
		name   string
		data   string
		fault  dynamotest.Fault
		writes int
		want   string
	}{
		{"number", `{"a":1e300}`, nil, 1, "the result's 11 bytes are JSON with the number 1e300; want up to 38 significant digits"},
		{"depth", strings.Repeat("[", 33) + strings.Repeat("]", 33), nil, 1, "more than 32 objects and arrays in one another"},
		{"large", `["` + strings.Repeat("x", 500<<10) + `"]`, nil, 1, "the result has 512004 bytes"},
		{"large by its numbers", "[" + strings.Repeat("10000000000000000000000000000000000001,", 20000) + "1]", nil, 2, "an item with all its attributes at most"},
		{"told by the server", `[1]`,
			dynamotest.Fail("ValidationException", "Nesting Levels have exceeded supported limits"), 2, "DynamoDB does not take the result: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			mustClaim(t, p, claimRequest(test.name, "mine"))
			if test.fault != nil {
				proxy.Script("UpdateItem", test.fault)
			}
			proxy.Requests()
			err := p.Complete(t.Context(), idempotency.CompleteRequest{
				Key: test.name, Owner: "mine", Now: now, Expiry: now.Add(time.Hour), Data: []byte(test.data)})
			if !errors.Is(err, idempotency.ErrResultNotStored) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %.300v; want an ErrResultNotStored with %q", err, test.want)
			}
			if diff := cmp.Diff(map[string]int{"UpdateItem": test.writes}, proxy.Requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			item := p.item(t, test.name)
			if _, stored := item["data"]; stored || attributes(item)["status"] != "COMPLETED" {
				t.Errorf("item is %v; want it completed without data", attributes(item))
			}
		})
	}
}
