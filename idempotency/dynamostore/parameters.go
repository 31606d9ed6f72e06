package dynamostore

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// parameters makes the parameters of many statements with few allocations. It is for one goroutine.
type parameters struct {
	list  []types.AttributeValue
	texts []types.AttributeValueMemberS

	memoNow, memoLease, memoExpiry moment
}

// newParameters returns room for n statements with so many parameters and texts each.
func newParameters(n, list, texts int) *parameters {
	return &parameters{
		list:  make([]types.AttributeValue, 0, n*list),
		texts: make([]types.AttributeValueMemberS, 0, n*texts),
	}
}

func (p *parameters) text(v string) types.AttributeValue {
	p.texts = append(p.texts, types.AttributeValueMemberS{Value: v})
	return &p.texts[len(p.texts)-1] // stays what it is even if the next one has to go elsewhere
}

func (p *parameters) add(values ...types.AttributeValue) { p.list = append(p.list, values...) }

// key adds the primary key of the item for key.
func (p *parameters) key(o *Options, key string) {
	if o.sorted() {
		p.add(p.text(o.partitionValue(key)))
	}
	p.add(p.text(key))
}

func (p *parameters) now(t time.Time) types.AttributeValue    { return p.memoNow.of(t.Unix()) }
func (p *parameters) expiry(t time.Time) types.AttributeValue { return p.memoExpiry.of(t.Unix()) }

func (p *parameters) lease(o *Options, t time.Time) types.AttributeValue {
	return p.memoLease.of(o.leaseUnits(t.UnixMilli()))
}

// since returns what was added since the list was start long.
func (p *parameters) since(start int) []types.AttributeValue {
	return p.list[start:len(p.list):len(p.list)]
}

// moment remembers the last value, since the times of a batch are mostly the same.
type moment struct {
	n     int64
	value types.AttributeValue
}

func (m *moment) of(n int64) types.AttributeValue {
	if m.value == nil || m.n != n {
		m.n, m.value = n, number(n)
	}
	return m.value
}
