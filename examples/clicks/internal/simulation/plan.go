package simulation

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
)

const (
	shards   = 3
	visitors = 24
	// perRecord is how many clicks the producer puts into one record at most.
	perRecord = 6
)

// plan is what the producer sends.
type plan struct {
	clicks []site.Click // in their order
	byID   map[string]site.Click
	// place is the place of a click among those of its visitor, from 0.
	place map[string]int
	// records are the clicks as they go into the stream: each record is an aggregate of clicks that belong to one shard,
	// or one click alone.
	records [][]site.Click
	shardOf map[string]string // by visitor
	// poison is the click that nobody can append.
	poison string
}

var pages = []string{"/", "/search", "/lamps", "/chairs", "/rugs", "/cart", "/checkout", "/help"}

// newPlan returns a plan for n clicks. The poison comes after half of them, in the first shard.
func newPlan(d draw.Seed, n int) (*plan, error) {
	p := &plan{byID: make(map[string]site.Click), place: make(map[string]int)}
	var err error
	if p.shardOf, err = shardsOfVisitors(); err != nil {
		return nil, err
	}
	firstShard := slices.Min(shardIDs(p.shardOf))
	seen := make(map[string]int)
	for i := range n {
		c := site.Click{
			ID: fmt.Sprintf("click-%04d", i+1), Visitor: visitor(d.Number(visitors, "visitor", i)),
			Page: pages[d.Number(len(pages), "page", i)],
		}
		if p.poison == "" && i >= n/2 && p.shardOf[c.Visitor] == firstShard {
			c.Page, p.poison = site.PageBroken, c.ID
		}
		p.place[c.ID] = seen[c.Visitor]
		seen[c.Visitor]++
		p.clicks, p.byID[c.ID] = append(p.clicks, c), c
	}
	p.aggregate(d)
	return p, nil
}

func visitor(i int) string { return fmt.Sprintf("visitor-%02d", i+1) }

// shardsOfVisitors asks a stream like that of the run.
func shardsOfVisitors() (map[string]string, error) {
	s, err := kinesistest.NewStream("visitors", func(o *kinesistest.Options) { o.Shards = shards })
	if err != nil {
		return nil, err
	}
	of := make(map[string]string)
	for i := range visitors {
		if of[visitor(i)], _, err = s.Put(kinesistest.Record{PartitionKey: visitor(i)}); err != nil {
			return nil, err
		}
	}
	return of, s.Close()
}

// aggregate makes records as the Kinesis Producer Library does: what belongs to one shard is gathered, and goes when there
// is enough of it.
func (p *plan) aggregate(d draw.Seed) {
	gathered := make(map[string][]site.Click)
	for _, c := range p.clicks {
		shard := p.shardOf[c.Visitor]
		gathered[shard] = append(gathered[shard], c)
		if len(gathered[shard]) > d.Number(perRecord, "record", shard, gathered[shard][0].ID) {
			p.records = append(p.records, gathered[shard])
			delete(gathered, shard)
		}
	}
	for _, shard := range shardIDs(p.shardOf) {
		if len(gathered[shard]) > 0 {
			p.records = append(p.records, gathered[shard])
		}
	}
}

// shardIDs returns the shards that there are visitors in, in their order.
func shardIDs(shardOf map[string]string) []string {
	var ids []string
	for _, id := range shardOf {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// streamRecords returns clicks as they are put into a stream.
func streamRecords(clicks []site.Click) []kinesistest.Record {
	records := make([]kinesistest.Record, len(clicks))
	for i, c := range clicks {
		data, err := json.Marshal(c)
		if err != nil {
			panic(err) // it is made of text
		}
		records[i] = kinesistest.Record{PartitionKey: c.Visitor, Data: data}
	}
	return records
}
