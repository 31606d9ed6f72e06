package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// A batch of any messages, some of them twice, some failing, some undecodable, in some groups.
type property struct {
	messages []message
	fails    map[string]bool // by ID, of the handler
	broken   map[string]bool // by ID, before the handler
	isFIFO   bool
	n        int // concurrency
	guarded  bool
}

func drawProperty(t *rapid.T) property {
	p := property{
		fails: map[string]bool{}, broken: map[string]bool{}, isFIFO: rapid.Bool().Draw(t, "FIFO"),
		n: rapid.SampledFrom([]int{1, 2, 3, 10}).Draw(t, "concurrency"), guarded: rapid.Bool().Draw(t, "guarded"),
	}
	arn := standardARN
	if p.isFIFO {
		arn = fifoARN
	}
	groups := map[string]string{} // a message has one group, however often it is delivered
	for range rapid.IntRange(0, 30).Draw(t, "messages") {
		id := fmt.Sprint("m", rapid.IntRange(1, 20).Draw(t, "id"))
		if _, ok := groups[id]; !ok {
			groups[id] = rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "group")
			p.fails[id] = rapid.IntRange(0, 3).Draw(t, "fails") == 0
			p.broken[id] = rapid.IntRange(0, 9).Draw(t, "broken") == 0
		}
		body := `{"id":"` + id + `"}`
		if p.broken[id] {
			body = `{"id":`
		}
		p.messages = append(p.messages, message{ID: id, Body: body, Group: groups[id], ARN: arn})
	}
	return p
}

// outcome says by the rules, one message after the other, what must be reported and what must run.
func (p *property) outcome() (reported []string, runs map[string][]string) {
	runs = map[string][]string{} // by group
	stopped, known := map[string]bool{}, map[string]bool{}
	for _, m := range p.messages {
		inOrder := p.isFIFO && m.Group != ""
		skipped := inOrder && stopped[m.Group]
		if !skipped && !p.broken[m.ID] && !known[m.ID] {
			runs[m.Group] = append(runs[m.Group], m.ID)
			known[m.ID] = true
		}
		if skipped || p.broken[m.ID] || p.fails[m.ID] {
			stopped[m.Group] = true
			if !slices.Contains(reported, m.ID) {
				reported = append(reported, m.ID)
			}
		}
	}
	return reported, runs
}

// What is reported is what failed, and the rest of its group on a FIFO queue. A group runs in its order, and nothing
// runs twice.
func TestPropertyOfABatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProperty(t)
		var mu sync.Mutex
		runs := map[string][]string{}
		store := idempotency.NewMemoryStore()
		h := newHandler(t, func(_ context.Context, m *sqs.Message[order]) error {
			mu.Lock()
			defer mu.Unlock()
			runs[m.GroupID()] = append(runs[m.GroupID()], m.ID())
			if p.fails[m.ID()] {
				return errors.New("no")
			}
			return nil
		}, concurrency(p.n), func(o *sqs.Options) {
			if p.guarded {
				o.Idempotency = newGuard(t, store)
			}
		})
		response, err := h.Invoke(context.Background(), event(p.messages...))
		if err != nil {
			t.Fatal(err)
		}
		reported, wantRuns := p.outcome()
		if diff := cmp.Diff(append([]string{}, reported...), answer(t, response)); diff != "" {
			t.Errorf("messages reported as failed (-want +got):\n%s", diff)
		}
		for _, order := range []map[string][]string{runs, wantRuns} {
			for group, ids := range order {
				if !p.isFIFO && p.n > 1 || group == "" {
					slices.Sort(ids) // there is no order
				}
			}
		}
		if diff := cmp.Diff(wantRuns, runs); diff != "" {
			t.Errorf("messages that ran, by group (-want +got):\n%s", diff)
		}
		if !p.guarded {
			return
		}
		// What is done is known as done, and nothing else is in the store.
		for _, ids := range wantRuns {
			for _, id := range ids {
				want := idempotency.Completed
				if p.fails[id] {
					want = idempotency.Absent
				}
				wantEntry(t, store, id, want)
			}
		}
	})
}
