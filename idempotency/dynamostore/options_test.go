package dynamostore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

func TestValidate(t *testing.T) {
	t.Setenv(dynamostore.TableVariable, "")
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
		{"empty table", client, "", dynamostore.Options{},
			`table is "" and the environment variable ONCEKIT_IDEMPOTENCY_TABLE is not set; want 3 to 255 of`},
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
		{"lease in seconds", client, "idempotency", dynamostore.Options{LeaseUnit: time.Second}, ""},
		{"lease in milliseconds", client, "idempotency", dynamostore.Options{LeaseUnit: time.Millisecond}, ""},
		{"lease in minutes", client, "idempotency", dynamostore.Options{LeaseUnit: time.Minute},
			"Options.LeaseUnit is 1m0s; want 1ms, 1s, or 0 for 1ms"},
		{"lease as a count of seconds", client, "idempotency", dynamostore.Options{LeaseUnit: 1},
			"Options.LeaseUnit is 1ns; want 1ms, 1s, or 0 for 1ms"},
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

// TestTableVariable has the table named by the environment, for all that take a table's name.
func TestTableVariable(t *testing.T) {
	client := &tables{describe: []types.TableDescription{table(types.TableStatusActive, "id:S")},
		ttl: types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: aws.String("expiration")}}
	const limits = "want 3 to 255 of the characters a-z, A-Z, 0-9, _, . and -, or an ARN"
	for _, test := range []struct {
		name, variable, table string
		want                  string // the error; empty: none
	}{
		{"both", "a/b", "orders", ""},
		{"variable", "orders", "", ""},
		{"neither", "", "",
			`dynamostore: table is "" and the environment variable ONCEKIT_IDEMPOTENCY_TABLE is not set; ` + limits},
		{"wrong variable", "a/b", "", `dynamostore: the environment variable ONCEKIT_IDEMPOTENCY_TABLE is "a/b"; ` + limits},
		{"wrong table", "orders", "a/b", `dynamostore: table is "a/b"; ` + limits},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(dynamostore.TableVariable, test.variable)
			asked := &fake{table: new(string), put: func(context.Context) error { return nil }}
			store := dynamostore.New(asked, test.table)
			for name, err := range map[string]error{
				"New":           store.Validate(),
				"NewWatermarks": dynamostore.NewWatermarks(asked, test.table).Validate(),
				"CreateTable":   dynamostore.CreateTable(t.Context(), client, test.table),
			} {
				got := ""
				if err != nil {
					got = err.Error()
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("error of %s (-want +got):\n%s", name, diff)
				}
			}
			if test.want != "" {
				return
			}
			// It is read once: what runs must not change its table.
			t.Setenv(dynamostore.TableVariable, "another")
			mustClaim(t, store, claimRequest("k", "a"))
			if *asked.table != "orders" {
				t.Errorf("table asked is %q; want orders", *asked.table)
			}
		})
	}
}
