package batch

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// Whatever becomes ready in whatever order, pop returns what a plain heap of all ready records returns.
func TestQueueAgainstAHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "records")
		items := make([]item, n)
		var q queue
		var model intHeap
		var blocked, taken []int
		for i := range items {
			if items[i].blocked = rapid.Bool().Draw(t, "blocked"); items[i].blocked {
				blocked = append(blocked, i)
			} else {
				heap.Push(&model, i)
			}
		}
		for range 3 * n {
			switch rapid.SampledFrom([]string{"pop", "pop", "unblock", "again", "end"}).Draw(t, "step") {
			case "pop":
				want := -1
				if len(model) > 0 {
					want = heap.Pop(&model).(int)
				}
				got := q.pop(items)
				if got != want {
					t.Fatalf("pop = %d, want %d", got, want)
				}
				if got >= 0 {
					items[got].phase = phaseStarting
					taken = append(taken, got)
				}
			case "unblock":
				if len(blocked) > 0 {
					k := rapid.IntRange(0, len(blocked)-1).Draw(t, "which")
					i := blocked[k]
					blocked = slices.Delete(blocked, k, k+1)
					items[i].blocked = false
					heap.Push(&model, i)
					q.push(i)
				}
			case "again": // a held record
				if len(taken) > 0 {
					k := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
					i := taken[k]
					taken = slices.Delete(taken, k, k+1)
					items[i].phase = phasePending
					heap.Push(&model, i)
					q.push(i)
				}
			case "end": // skipped while it was ready
				if len(model) > 0 {
					k := rapid.IntRange(0, len(model)-1).Draw(t, "which")
					items[model[k]].phase = phaseEnded
					heap.Remove(&model, k)
				}
			}
		}
	})
}

func TestQueueHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		type entry struct {
			I  int
			At int64
		}
		var model []entry
		if i, _ := q.nextHeld(); i != -1 {
			t.Fatalf("nextHeld of an empty queue = %d, want -1", i)
		}
		for i := range rapid.IntRange(0, 40).Draw(t, "steps") {
			if len(model) == 0 || rapid.Bool().Draw(t, "hold") {
				at := rapid.Int64Range(0, 20).Draw(t, "at")
				q.hold(i, time.UnixMilli(at))
				model = append(model, entry{i, at})
				continue
			}
			want := slices.MinFunc(model, func(a, b entry) int { return cmp.Or(int(a.At-b.At), a.I-b.I) })
			i, at := q.nextHeld()
			if got := (entry{i, at.UnixMilli()}); got != want {
				t.Fatalf("nextHeld = %v, want %v", got, want)
			}
			q.unhold()
			model = slices.DeleteFunc(model, func(e entry) bool { return e == want })
		}
		if len(q.held) != len(model) {
			t.Fatalf("%d are held, want %d", len(q.held), len(model))
		}
	})
}

func TestLanesAreLinked(t *testing.T) {
	records := []Record{{Lane: "A"}, {}, {Lane: "B"}, {Lane: "A"}, {}, {Lane: "B"}, {Lane: "A"}, {Lane: "C"}}
	items := make([]item, len(records))
	new(queue).lanes(records, items)
	var got []string
	for i := range items {
		got = append(got, fmt.Sprint(items[i].laneNext, items[i].blocked, items[i].follower, items[i].next))
	}
	want := []string{
		"3 false -1 -1", "-1 false -1 -1", "5 false -1 -1", "6 true -1 -1", "-1 false -1 -1", "-1 true -1 -1", "-1 true -1 -1",
		"-1 false -1 -1",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}
