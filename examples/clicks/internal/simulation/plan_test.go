package simulation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/examples/internal/draw"
)

func TestPlan(t *testing.T) {
	for _, n := range []int{100, 400, 1000} {
		for seed := range draw.Seed(5) {
			p, err := newPlan(seed, n)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.clicks) != n || len(p.byID) != n {
				t.Errorf("%d clicks with %d IDs, want %d", len(p.clicks), len(p.byID), n)
			}
			sent, recorded := make(map[string][]string), make(map[string][]string) // by visitor
			for _, c := range p.clicks {
				if p.place[c.ID] != len(sent[c.Visitor]) {
					t.Errorf("%s has place %d, want %d", c.ID, p.place[c.ID], len(sent[c.Visitor]))
				}
				sent[c.Visitor] = append(sent[c.Visitor], c.ID)
				if (c.ID == p.poison) != (c.Page == site.PageBroken) {
					t.Errorf("%s has the page %s, and the poison is %q", c.ID, c.Page, p.poison)
				}
			}
			aggregates := 0
			for _, record := range p.records {
				for _, c := range record {
					recorded[c.Visitor] = append(recorded[c.Visitor], c.ID)
					if p.shardOf[c.Visitor] != p.shardOf[record[0].Visitor] {
						t.Errorf("a record has clicks of two shards: %v", record)
					}
				}
				if len(record) > perRecord {
					t.Errorf("a record has %d clicks, want at most %d", len(record), perRecord)
				}
				if len(record) > 1 {
					aggregates++
				}
			}
			if diff := cmp.Diff(sent, recorded); diff != "" {
				t.Errorf("clicks of a visitor in the records (-want +got):\n%s", diff)
			}
			if aggregates < len(p.records)/2 || aggregates == len(p.records) {
				t.Errorf("%d of %d records are aggregates, want most", aggregates, len(p.records))
			}
			if ids := shardIDs(p.shardOf); len(ids) != shards || p.poison == "" || p.shardOf[p.byID[p.poison].Visitor] != ids[0] {
				t.Errorf("poison is %q, shards are %q; want one in the first of %d", p.poison, ids, shards)
			}
		}
	}
}
