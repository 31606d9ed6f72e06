package dynamostore_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// layout is a way to keep items.
type layout struct {
	name    string
	options dynamostore.Options // with the defaults filled in
}

func layouts() []layout {
	names := dynamostore.Options{
		KeyAttribute:         "id",
		StatusAttribute:      "status",
		ExpiryAttribute:      "expiration",
		LeaseAttribute:       "in_progress_expiration",
		LeaseUnit:            time.Millisecond,
		DataAttribute:        "data",
		FingerprintAttribute: "validation",
		OwnerAttribute:       "owner",
		AttemptsAttribute:    "attempts",
	}
	native := names
	native.NativeData = true
	mayfly := names
	mayfly.ExpiryAttribute, mayfly.LeaseAttribute, mayfly.LeaseUnit = "expires_at", "in_progress_until", time.Second
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
	reserved := dynamostore.Options{
		KeyAttribute:         "KEY",
		SortKeyAttribute:     "ORDER",
		PartitionValue:       "it's a \"value\"",
		StatusAttribute:      "STATE",
		ExpiryAttribute:      "TTL",
		LeaseAttribute:       "TIMESTAMP",
		LeaseUnit:            time.Millisecond,
		DataAttribute:        "VALUE",
		FingerprintAttribute: "HASH",
		OwnerAttribute:       "OWNER",
		AttemptsAttribute:    "COUNT",
	}
	odd := dynamostore.Options{
		KeyAttribute:         "my-key",
		SortKeyAttribute:     "a.b",
		StatusAttribute:      "it's \"status\"",
		ExpiryAttribute:      "ttl",
		LeaseAttribute:       "a",
		LeaseUnit:            time.Millisecond,
		DataAttribute:        "b c",
		FingerprintAttribute: "#key",
		OwnerAttribute:       ":owner",
		AttemptsAttribute:    "größe",
	}
	return []layout{
		{"default", names}, {"sort key and reserved words", reserved}, {"sort key by namespace and odd names", odd},
		{"native data", native}, {"mayfly", mayfly},
	}
}

// partitionOf returns the partition key's value of a key in a layout with a sort key.
func partitionOf(o dynamostore.Options, key string) string {
	if o.PartitionValue != "" {
		return o.PartitionValue
	}
	before, _, _ := strings.Cut(key, "#")
	return "idempotency#" + before
}

// planter writes items as another tool would: past the store.
type planter struct {
	*dynamostore.Store
	client  *dynamodb.Client
	table   string
	options dynamostore.Options
}

func (p planter) key(key string) map[string]types.AttributeValue {
	if p.options.SortKeyAttribute == "" {
		return map[string]types.AttributeValue{p.options.KeyAttribute: s(key)}
	}
	return map[string]types.AttributeValue{
		p.options.KeyAttribute: s(partitionOf(p.options, key)), p.options.SortKeyAttribute: s(key),
	}
}

// Plant implements storetest.Planter.
func (p planter) Plant(t testing.TB, key string, e idempotency.Entry) {
	t.Helper()
	item := p.key(key)
	item[p.options.StatusAttribute] = s(e.Status.String())
	if e.Owner != "" {
		item[p.options.OwnerAttribute] = s(e.Owner)
	}
	if e.Fingerprint != "" {
		item[p.options.FingerprintAttribute] = s(e.Fingerprint)
	}
	if !e.Lease.IsZero() {
		item[p.options.LeaseAttribute] = n(e.Lease.UnixNano() / int64(p.options.LeaseUnit))
	}
	if !e.Expiry.IsZero() {
		item[p.options.ExpiryAttribute] = n(e.Expiry.Unix())
	}
	if e.Data != nil {
		item[p.options.DataAttribute] = s(string(e.Data))
	}
	if e.Attempts != 0 {
		item[p.options.AttemptsAttribute] = n(int64(e.Attempts))
	}
	p.put(t, item)
}

// KeepsValues implements storetest.ValueKeeper.
func (p planter) KeepsValues() bool { return p.options.NativeData }

// put writes an item as it is.
func (p planter) put(t testing.TB, item map[string]types.AttributeValue) {
	t.Helper()
	_, err := p.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(p.table), Item: item})
	if err != nil {
		t.Fatal(err)
	}
}

// item reads an item as it is, nil if there is none.
func (p planter) item(t testing.TB, key string) map[string]types.AttributeValue {
	t.Helper()
	out, err := p.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(p.table), Key: p.key(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

// newPlanter returns a store in a fresh table.
func newPlanter(t testing.TB, client *dynamodb.Client, o dynamostore.Options) planter {
	t.Helper()
	optFn := func(options *dynamostore.Options) { *options = o }
	table := dynamotest.Table(t, client, optFn)
	store := dynamostore.New(client, table, optFn)
	if err := store.Validate(); err != nil {
		t.Fatal(err)
	}
	return planter{store, client, table, o}
}
