package dynamotest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// TestFaults checks of each fault what the client sees and whether the request reached the server.
func TestFaults(t *testing.T) {
	direct := Client(t)
	table := Table(t, direct)
	for _, test := range []struct {
		name    string
		fault   Fault
		want    string // part of the client's error; empty: none
		arrived bool
	}{
		{"none", nil, "", true},
		{"lose reply", LoseReply, "connection reset by peer", true},
		{"drop", Drop, "connection reset by peer", false},
		{"server error", ServerError, "InternalServerError", false},
		{"delay", DelayReply(10 * time.Millisecond), "", true},
		{"delay beyond the client's patience", DelayReply(time.Minute), "deadline exceeded", true},
		{"throttle", Throttle("TableWriteKeyRangeThroughputExceeded"), "ProvisionedThroughputExceededException", false},
		{"fail", Fail("TransactionConflictException", "ongoing"), "TransactionConflictException: ongoing", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			proxy := NewProxy(t)
			client := proxy.Client(t, NoRetries)
			proxy.Script("PutItem", test.fault)
			ctx := t.Context()
			if test.want == "deadline exceeded" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second) // time enough for the request to arrive
				defer cancel()
			}
			_, err := client.PutItem(ctx, put(table, test.name))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error is %v; want %q", err, test.want)
			}
			out, err := direct.GetItem(t.Context(), &dynamodb.GetItemInput{
				TableName: aws.String(table), Key: put(table, test.name).Item, ConsistentRead: aws.Bool(true),
			})
			if err != nil {
				t.Fatal(err)
			}
			if arrived := out.Item != nil; arrived != test.arrived {
				t.Errorf("the request arrived: %t; want %t", arrived, test.arrived)
			}
			if diff := cmp.Diff(map[string]int{"PutItem": 1}, proxy.Requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThrottleHasReasons(t *testing.T) {
	proxy := NewProxy(t)
	proxy.Script("GetItem", Throttle("a", "b"))
	_, err := proxy.Client(t, NoRetries).GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("table"), Key: put("", "k").Item,
	})
	var throttled *types.ProvisionedThroughputExceededException
	if !errors.As(err, &throttled) || len(throttled.ThrottlingReasons) != 2 ||
		aws.ToString(throttled.ThrottlingReasons[1].Reason) != "b" {
		t.Errorf("error is %v; want a ProvisionedThroughputExceededException for the reasons a and b", err)
	}
}

func TestHideItem(t *testing.T) {
	proxy := NewProxy(t)
	client := proxy.Client(t, NoRetries)
	input := put(Table(t, client), "k")
	if _, err := client.PutItem(t.Context(), input); err != nil {
		t.Fatal(err)
	}
	input.ConditionExpression = aws.String("attribute_not_exists(id)")
	input.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	proxy.Script("PutItem", HideItem, nil)
	for _, want := range []int{0, 1} {
		_, err := client.PutItem(t.Context(), input)
		var refused *types.ConditionalCheckFailedException
		if !errors.As(err, &refused) || len(refused.Item) != want {
			t.Errorf("error is %v with an item %v; want a ConditionalCheckFailedException and %d attributes", err, refused.Item, want)
		}
	}
}

// TestRandom checks that a seed makes the choices repeatable, and that a script goes before them.
func TestRandom(t *testing.T) {
	proxy := NewProxy(t)
	client := proxy.Client(t, NoRetries)
	table := Table(t, client)
	outcomes := func() (text string) {
		proxy.Random(42, func(chance *rand.Rand, operation string) Fault {
			if operation == "PutItem" && chance.IntN(2) == 0 {
				return Drop
			}
			return nil
		})
		defer proxy.Random(0, nil)
		proxy.Script("PutItem", nil, nil, nil, Fail("Scripted", ""))
		for range 20 {
			_, err := client.PutItem(t.Context(), put(table, "k"))
			switch {
			case err == nil:
				text += "."
			case strings.Contains(err.Error(), "Scripted"):
				text += "s"
			default:
				text += "d"
			}
		}
		return text
	}
	first, second := outcomes(), outcomes()
	if first != second || !strings.HasPrefix(first, "...s") || !strings.Contains(first, "d") {
		t.Errorf("outcomes are %q and %q; want the same, ...s first, and some dropped", first, second)
	}
}

func put(table, key string) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: aws.String(table),
		Item:      map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key}},
	}
}
