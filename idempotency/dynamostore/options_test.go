package dynamostore_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

func TestValidate(t *testing.T) {
	client := &fake{}
	long := strings.Repeat("ö", 128)
	for _, test := range []struct {
		name    string
		client  dynamostore.Client
		table   string
		options dynamostore.Options
		want    string // part of the error; empty: none
	}{
		{"defaults", client, "idempotency", dynamostore.Options{}, ""},
		{"arn", client, "arn:aws:dynamodb:us-east-1:123456789012:table/idempotency", dynamostore.Options{}, ""},
		{"shortest name", client, "a.b", dynamostore.Options{}, ""},
		{"sort key", client, "idempotency", dynamostore.Options{SortKeyAttribute: "sk", PartitionValue: "v"}, ""},
		{"reserved words", client, "idempotency", dynamostore.Options{ExpiryAttribute: "ttl", KeyAttribute: "table"}, ""},

		{"nil client", nil, "idempotency", dynamostore.Options{}, "client is nil; want a *dynamodb.Client"},
		{"nil pointer as client", (*dynamodb.Client)(nil), "idempotency", dynamostore.Options{}, "client is nil; want a *dynamodb.Client"},
		{"empty table", client, "", dynamostore.Options{}, `table is ""; want 3 to 255 of`},
		{"short table", client, "ab", dynamostore.Options{}, `table is "ab"; want 3 to 255 of`},
		{"long table", client, strings.Repeat("a", 256), dynamostore.Options{}, "want 3 to 255 of"},
		{"odd table", client, "a/b", dynamostore.Options{}, `table is "a/b"`},
		{"same name", client, "idempotency", dynamostore.Options{DataAttribute: "x", OwnerAttribute: "x"},
			`Options.OwnerAttribute is "x", as Options.DataAttribute is`},
		{"name of a default", client, "idempotency", dynamostore.Options{SortKeyAttribute: "status"},
			`Options.StatusAttribute is "status", as Options.SortKeyAttribute is`},
		{"long name", client, "idempotency", dynamostore.Options{LeaseAttribute: long}, "256 bytes; the limit is 255"},
		{"partition value without sort key", client, "idempotency", dynamostore.Options{PartitionValue: "v"},
			`Options.PartitionValue is "v", but Options.SortKeyAttribute is empty`},
		{"long partition value", client, "idempotency",
			dynamostore.Options{SortKeyAttribute: "sk", PartitionValue: strings.Repeat("v", 2049)},
			"Options.PartitionValue has 2049 bytes; the limit is 2048"},
		{"negative calls", client, "idempotency", dynamostore.Options{MaxInFlight: -1},
			"Options.MaxInFlight is -1; it must be at least 1"},
		{"shortest timeout", client, "idempotency", dynamostore.Options{CallTimeout: 1}, ""},
		{"negative timeout", client, "idempotency", dynamostore.Options{CallTimeout: -1},
			"Options.CallTimeout is -1ns; it must be more than 0, or 0 for 3s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := dynamostore.New(test.client, test.table, func(o *dynamostore.Options) { *o = test.options }, nil)
			err := store.Validate()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Fatalf("error is %v; want %q", err, test.want)
			}
			if err == nil {
				return
			}
			if _, newErr := idempotency.New("orders", store); newErr == nil || !strings.Contains(newErr.Error(), err.Error()) {
				t.Errorf("idempotency.New = %v; want it to say %v", newErr, err)
			}
			// Used without idempotency.New it must not reach a client that may be nil.
			for _, transition := range transitions() {
				if got := transition.do(t.Context(), store); got == nil || got.Error() != err.Error() {
					t.Errorf("%s: error is %v; want %v", transition.name, got, err)
				}
			}
		})
	}
}
