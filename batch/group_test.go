package batch_test

import (
	cmpOrder "cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

// grouped is batch.Stages that take groups, made of functions. Those that are nil do nothing and admit everything. It
// writes down the calls for groups, and when handlers begin.
type grouped struct {
	trace
	begin   time.Time
	groups  batch.Groups
	prepare func(i int) (string, error)
	admit   func(ctx context.Context, records []int, admissions []batch.Admission)
	run     func(ctx context.Context, i int) error
	settle  func(ctx context.Context, records []int, settlements []batch.Settlement)

	mu      sync.Mutex
	claimed map[int]time.Time     // admitted, and not begun or settled: since when
	waited  map[int]time.Duration // how long those waited that have begun
	most    int                   // of those
	sizes   []int                 // of the groups that were admitted
	inside  gauge                 // handlers
}

func newGrouped(admit, settle int) *grouped {
	return &grouped{begin: time.Now(), groups: batch.Groups{Admit: admit, Settle: settle}, claimed: map[int]time.Time{}, waited: map[int]time.Duration{}}
}

func (g *grouped) note(format string, args ...any) {
	g.add("%v %s", time.Since(g.begin), fmt.Sprintf(format, args...))
}

// claims keeps the records that are claimed and wait.
func (g *grouped) claims(claimed bool, records ...int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, i := range records {
		if claimed {
			g.claimed[i] = time.Now()
		} else {
			delete(g.claimed, i)
		}
	}
	g.most = max(g.most, len(g.claimed))
}

func (g *grouped) wantNoClaims(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.claimed) > 0 {
		t.Errorf("claims left: %v", g.claimed)
	}
}

func (g *grouped) Groups() batch.Groups { return g.groups }
func (g *grouped) Twin(int, int) error  { return nil }
func (g *grouped) Begin(i int) error {
	g.mu.Lock()
	g.waited[i] = time.Since(g.claimed[i])
	g.mu.Unlock()
	g.claims(false, i)
	return nil
}

func (g *grouped) Prepare(_ context.Context, i int) (string, error) {
	if g.prepare == nil {
		return "", nil
	}
	return g.prepare(i)
}

func (g *grouped) Admit(ctx context.Context, records []int, admissions []batch.Admission) {
	g.note("admit %v", records)
	g.mu.Lock()
	g.sizes = append(g.sizes, len(records))
	g.mu.Unlock()
	if g.admit != nil {
		g.admit(ctx, records, admissions)
	}
	for k, i := range records {
		g.claims(admissions[k].Outcome == 0, i)
	}
}

func (g *grouped) Run(ctx context.Context, i int) error {
	g.inside.enter()
	defer g.inside.leave()
	g.note("run %d", i)
	if g.run == nil {
		return nil
	}
	return g.run(ctx, i)
}

func (g *grouped) Settle(ctx context.Context, records []int, settlements []batch.Settlement) {
	outcomes := make([]string, len(records))
	for k := range records {
		outcomes[k] = fmt.Sprintf("%d %v", records[k], settlements[k].Outcome)
	}
	g.note("settle %s", strings.Join(outcomes, ", "))
	g.claims(false, records...)
	if g.settle != nil {
		g.settle(ctx, records, settlements)
	}
}

// takes makes a call for groups that takes d, and does nothing.
func takes[T any](d time.Duration) func(context.Context, []int, []T) {
	return func(context.Context, []int, []T) { time.Sleep(d) }
}

func sleeps(d time.Duration) func(context.Context, int) error {
	return func(context.Context, int) error { time.Sleep(d); return nil }
}

func (g *grouped) want(t *testing.T, want ...string) {
	t.Helper()
	got := g.list()
	slices.SortStableFunc(got, func(a, b string) int { // what happens at the same time has no order
		return cmpOrder.Or(cmpOrder.Compare(at(a), at(b)), cmpOrder.Compare(a, b))
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
}

// at is when the line was noted.
func at(line string) time.Duration {
	when, _, _ := strings.Cut(line, " ")
	d, err := time.ParseDuration(when)
	if err != nil {
		panic(err)
	}
	return d
}

// count returns how many lines of the trace have word, and the first of those.
func (g *grouped) count(word string) (n int, first string) {
	for _, line := range g.list() {
		if strings.Contains(line, word) {
			if n++; n == 1 {
				first = line
			}
		}
	}
	return n, first
}

const us, ms = time.Microsecond, time.Millisecond

func TestGroups(t *testing.T) {
	for _, test := range []struct {
		name        string
		records     string
		groups      [2]int
		concurrency int
		handler     []time.Duration // of each record, the last one's for all others
		call        time.Duration   // how long each call takes
		want        []string
	}{
		// The next group is claimed while the last of this one runs.
		{"full", "a b c d e f", [2]int{2, 2}, 1, []time.Duration{100 * us}, 4 * ms, []string{"0s admit [0 1]", "4ms run 0", "4.1ms admit [2 3]", "4.1ms run 1", "4.2ms settle 0 succeeded, 1 succeeded",
			"8.1ms run 2", "8.2ms admit [4 5]", "8.2ms run 3", "8.3ms settle 2 succeeded, 3 succeeded",
			"12.2ms run 4", "12.3ms run 5", "12.4ms settle 4 succeeded, 5 succeeded",
		}},
		// Those that are quick share a call, though a worker has nothing to do meanwhile: the call for the last one is when it
		// is anyway.
		{"nothing else is ready", "a b c", [2]int{10, 10}, 5, []time.Duration{100 * us, 200 * us, 300 * us}, 4 * ms, []string{
			"0s admit [0 1 2]", "4ms run 0", "4ms run 1", "4ms run 2", "4.3ms settle 0 succeeded, 1 succeeded, 2 succeeded",
		}},
		{"nothing else is ready, and one is slow", "a b c", [2]int{10, 10}, 5, []time.Duration{100 * us, 200 * us, time.Second}, 4 * ms, []string{
			"0s admit [0 1 2]", "4ms run 0", "4ms run 1", "4ms run 2", "9.2ms settle 0 succeeded, 1 succeeded", "1.004s settle 2 succeeded",
		}},
		{"nothing else is ready, and handlers have been slow", "a b c", [2]int{10, 10}, 5, []time.Duration{2 * ms, 3 * ms, 4 * ms}, ms, []string{
			"0s admit [0 1 2]", "1ms run 0", "1ms run 1", "1ms run 2", "3ms settle 0 succeeded", "4ms settle 1 succeeded", "5ms settle 2 succeeded",
		}},
		{"nothing else is ready, and most handlers have been slow", "a b c", [2]int{10, 10}, 2, []time.Duration{10 * ms, 20 * ms, 100 * us}, 4 * ms, []string{
			"0s admit [0 1 2]", "4ms run 0", "4ms run 1", "14ms run 2", "14ms settle 0 succeeded", "14.1ms settle 2 succeeded",
			"24ms settle 1 succeeded",
		}},
		{"nothing else is ready, and nothing runs", "a b c d", [2]int{2, 10}, 1, []time.Duration{100 * us}, 4 * ms, []string{
			"0s admit [0 1]", "4ms run 0", "4.1ms admit [2 3]", "4.1ms run 1", "4.2ms settle 0 succeeded, 1 succeeded",
			"8.1ms run 2", "8.2ms run 3", "8.3ms settle 2 succeeded, 3 succeeded",
		}},
		{"a lane waits", "a b A.1 A.2", [2]int{10, 10}, 5, []time.Duration{300 * us, 300 * us, 100 * us}, 4 * ms, []string{
			"0s admit [0 1 2]", "4ms run 0", "4ms run 1", "4ms run 2", "4.1ms settle 2 succeeded", "4.3ms settle 0 succeeded, 1 succeeded",
			"8.1ms admit [3]", "12.1ms run 3", "12.2ms settle 3 succeeded",
		}},
		// Nobody waits for the first two. Those that end while they are settled share a call, which waits for none of them
		// once the last handler has ended.
		{"slow handlers", "a b c d", [2]int{4, 4}, 4, []time.Duration{10 * ms, 11 * ms, 12 * ms, 13 * ms}, 4 * ms, []string{
			"0s admit [0 1 2 3]", "4ms run 0", "4ms run 1", "4ms run 2", "4ms run 3",
			"14ms settle 0 succeeded", "15ms settle 1 succeeded", "17ms settle 2 succeeded, 3 succeeded",
		}},
		{"more to come", "a b c d", [2]int{4, 4}, 4, []time.Duration{10 * ms, 11 * ms, 12 * ms, 20 * ms}, 4 * ms, []string{
			"0s admit [0 1 2 3]", "4ms run 0", "4ms run 1", "4ms run 2", "4ms run 3",
			"14ms settle 0 succeeded", "15ms settle 1 succeeded", "18ms settle 2 succeeded", "24ms settle 3 succeeded",
		}},
		// Others might have shared its call, but not any more.
		{"a quick one among slow ones", "a b c", [2]int{4, 4}, 2, []time.Duration{0, time.Second, 2 * time.Second}, 4 * ms, []string{
			"0s admit [0 1 2]", "4ms run 0", "4ms run 1", "4ms run 2",
			"9ms settle 0 succeeded", "1.004s settle 1 succeeded", "2.004s settle 2 succeeded",
		}},
		// All workers are busy, but it took so long that what waiting for others saves is nothing beside it.
		{"slow ones among slower ones", "a b c d", [2]int{4, 4}, 2, []time.Duration{10 * ms, time.Second, 20 * ms, 2 * time.Second}, 4 * ms, []string{
			"0s admit [0 1 2 3]", "4ms run 0", "4ms run 1", "14ms run 2", "14ms settle 0 succeeded",
			"34ms run 3", "34ms settle 2 succeeded", "1.004s settle 1 succeeded", "2.034s settle 3 succeeded",
		}},
		// It may have seemed slow on a busy machine only: it waits for others as the quick ones do.
		{"a slow one among quick ones", "a b c d e f", [2]int{6, 6}, 2, []time.Duration{100 * us, 1500 * us, 800 * us}, 4 * ms, []string{
			"0s admit [0 1 2 3 4 5]", "4ms run 0", "4ms run 1", "4.1ms run 2", "4.9ms run 3", "5.5ms run 4",
			"5.7ms run 5", "6.5ms settle 0 succeeded, 1 succeeded, 2 succeeded, 3 succeeded, 4 succeeded, 5 succeeded",
		}},
		// The third call at a time is for the one that A.2 waits for.
		{"a lane goes on at once", "a b A.1 A.2", [2]int{4, 4}, 4, []time.Duration{10 * ms, 11 * ms, 12 * ms, 0}, 4 * ms, []string{
			"0s admit [0 1 2]", "4ms run 0", "4ms run 1", "4ms run 2",
			"14ms settle 0 succeeded", "15ms settle 1 succeeded", "16ms settle 2 succeeded",
			"20ms admit [3]", "24ms run 3", "24ms settle 3 succeeded",
		}},
		{"a lane alone", "A.1 A.2 A.3", [2]int{4, 4}, 2, []time.Duration{0}, 4 * ms, []string{
			"0s admit [0]", "4ms run 0", "4ms settle 0 succeeded", "8ms admit [1]", "12ms run 1", "12ms settle 1 succeeded",
			"16ms admit [2]", "20ms run 2", "20ms settle 2 succeeded",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped(test.groups[0], test.groups[1])
				g.admit, g.settle = takes[batch.Admission](test.call), takes[batch.Settlement](test.call)
				g.run = func(_ context.Context, i int) error {
					time.Sleep(test.handler[min(i, len(test.handler)-1)])
					return nil
				}
				report := runStages(t, t.Context(), newRecords(test.records), g, concurrency(test.concurrency))
				if got := report.Count(batch.Succeeded); got != len(report.Results) {
					t.Errorf("%d succeeded, want all: %q", got, summary(report))
				}
				g.want(t, test.want...)
			})
		})
	}
}

// Where records are added one by one to a group that does not get full, the oldest one waits for 50 milliseconds, and for
// 5 if a record of its lane waits for it.
func TestSettlementsDoNotWaitForAFullGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped(500, 1000)
		g.run = sleeps(900 * us)
		records := append(newRecords("A.1 A.2"), numbered(300)...)
		report := runStages(t, t.Context(), records, g, concurrency(2))
		if got := report.Count(batch.Succeeded); got != len(records) {
			t.Errorf("%d succeeded, want all: %q", got, summary(report))
		}
		var calls []time.Duration
		for _, line := range g.list() {
			if strings.Contains(line, "settle") {
				calls = append(calls, at(line))
			}
		}
		// A.1 ends at 0.9 ms, and the first ones of the next two groups at 6.3 and 56.7 ms.
		want := []time.Duration{5900 * us, 56300 * us, 106700 * us}
		if diff := cmp.Diff(want, calls[:min(len(calls), len(want))]); diff != "" {
			t.Errorf("settled at (-want +got):\n%s", diff)
		}
	})
}

// A record whose preparation hangs does not hold up the group that it could have been part of.
func TestGroupDoesNotWaitForAHungPreparation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped(10, 10)
		g.prepare = func(i int) (string, error) {
			if i == 1 {
				time.Sleep(30 * time.Second)
			}
			return "", nil
		}
		report := runStages(t, within(t, time.Minute), newRecords("a hangs b c"), g, concurrency(3))
		if got := report.Count(batch.Succeeded); got != 4 {
			t.Errorf("%d succeeded, want 4: %q", got, summary(report))
		}
		for _, i := range []int{0, 2, 3} {
			if n, first := g.count(fmt.Sprint("run ", i)); n != 1 || first != fmt.Sprint("5ms run ", i) {
				t.Errorf("record %d: %q, want it to run after 5ms", i, first)
			}
		}
	})
}

// Nor do records whose preparations end one after the other: the first ones are not held until the last one.
func TestGroupDoesNotWaitForSlowPreparations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped(10, 10)
		g.prepare = func(i int) (string, error) { time.Sleep(time.Duration(i+1) * 4 * ms); return "", nil }
		runStages(t, t.Context(), numbered(10), g, concurrency(20))
		if _, first := g.count("admit"); first != "9ms admit [0 1]" {
			t.Errorf("first call: %q, want it after 5ms", first)
		}
	})
}

// A record of a lane also waits for the one whose outcome a twin in its lane shares.
func TestGroupThatALaneWaitsForByATwin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped(10, 10)
		g.run = func(_ context.Context, i int) error {
			time.Sleep([]time.Duration{100 * us, 100 * us, 0, time.Second}[i]) // whichever of the twins leads
			return nil
		}
		// A.twin is a twin of twin by its ID, and A.2 is behind it.
		records := []batch.Record{{ID: "twin"}, {ID: "twin", Lane: "A"}, {ID: "A.2", Lane: "A"}, {ID: "hangs"}}
		runStages(t, t.Context(), records, g, concurrency(5))
		if _, line := g.count("admit [2]"); line != "100µs admit [2]" {
			t.Errorf("%q, want it as soon as the one before it is settled", line)
		}
	})
}

// Where handlers take longer than what is admitted may wait, records are not admitted ahead, to be admitted once more
// before they begin.
func TestGroupsDoNotRunAheadOfSlowHandlers(t *testing.T) {
	for _, test := range []struct {
		name             string
		handler, startBy time.Duration
	}{
		{"half of what it may wait", 550 * ms, time.Second},
		{"quick ones that make others wait", 300 * ms, 400 * ms},
		{"so long that all of the first group wait too long", 510 * ms, 500 * ms},
		{"all of what it may wait", time.Second, time.Second},
		{"more than that", 10 * time.Second, 100 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped(100, 25)
				admitted := 0
				var mu sync.Mutex
				g.admit = func(_ context.Context, records []int, admissions []batch.Admission) {
					time.Sleep(5 * ms)
					mu.Lock()
					defer mu.Unlock()
					admitted += len(records)
					for k := range admissions {
						admissions[k].StartBy = time.Now().Add(test.startBy)
					}
				}
				g.run = func(_ context.Context, i int) error {
					time.Sleep(test.handler + time.Duration(i%10)*ms) // the workers come one after the other
					return nil
				}
				report := runStages(t, t.Context(), numbered(500), g, concurrency(10))
				if got := report.Count(batch.Succeeded); got != 500 {
					t.Errorf("%d succeeded, want 500: %q", got, summary(report))
				}
				// The first group is admitted before it is known how long handlers take.
				if admitted > 500+25 {
					t.Errorf("%d admissions of 500 records, want 25 more at most", admitted)
				}
				if most := 50 * (test.handler + 20*ms); report.Duration > most {
					t.Errorf("took %v, want %v at most, as if each were admitted and settled by itself", report.Duration, most)
				}
			})
		})
	}
}

// Of two calls for admissions the one sent last may be answered first.
func TestGroupsOneAtATimeAnsweredOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGrouped(1, 1)
		g.admit = func(_ context.Context, records []int, _ []batch.Admission) {
			if records[0] == 0 {
				time.Sleep(10 * ms)
			}
		}
		runStages(t, t.Context(), newRecords("a b"), g, concurrency(1))
		g.want(t, "0s admit [0]", "10ms admit [1]", "10ms run 0", "10ms run 1", "10ms settle 0 succeeded", "10ms settle 1 succeeded")
	})
}

// One at a time is one at a time in input order, whatever could be claimed together: behind a record of the same lane, and
// behind one whose claim has to be renewed.
func TestGroupsOneAtATime(t *testing.T) {
	for _, test := range []struct {
		name, records string
		startBy       time.Duration // 0: none
		handler       time.Duration
	}{
		{"quick", "a b c d e f g h i j k l", 0, 0},
		{"slow", "a b c d e f g h i j k l", 0, time.Second},
		{"lanes", "A.1 b A.2 c B.1 A.3 d B.2 e", 0, 100 * ms},
		{"one lane and others", "A.1 A.2 A.3 x y", 0, 0},
		{"renewed", "a b c d e f g h i j k l", 250 * ms, 100 * ms},
		{"renewed each time", "a b c d e f g h i j k l", 10 * ms, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGrouped(5, 2)
				g.admit = func(_ context.Context, _ []int, admissions []batch.Admission) {
					time.Sleep(4 * ms)
					for k := range admissions {
						if test.startBy > 0 {
							admissions[k].StartBy = time.Now().Add(test.startBy)
						}
					}
				}
				g.settle = takes[batch.Settlement](4 * ms)
				var ran []int
				g.run = func(_ context.Context, i int) error {
					ran = append(ran, i)
					time.Sleep(test.handler)
					return nil
				}
				report := runStages(t, t.Context(), newRecords(test.records), g, concurrency(1))
				if got := report.Count(batch.Succeeded); got != len(report.Results) {
					t.Errorf("%d succeeded, want all: %q", got, summary(report))
				}
				var want []int
				for i := range report.Results {
					want = append(want, i)
				}
				if diff := cmp.Diff(want, ran); diff != "" {
					t.Errorf("order (-want +got):\n%s", diff)
				}
				if most := g.inside.most(); most != 1 {
					t.Errorf("%d handlers at once, want 1", most)
				}
			})
		})
	}
}
