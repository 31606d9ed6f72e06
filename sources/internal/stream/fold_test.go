package stream

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// folding is records whose fold counts them in the state. Record i fails after it has left its mark if fails says so.
type folding struct {
	fails   func(i int) error
	folded  []int
	again   []bool
	numbers []string // sequence numbers; nil: each record's index
}

func (f *folding) Prepare(int) (pipeline.Identity, error) { return pipeline.Identity{}, nil }

func (f *folding) Fold(_ context.Context, s map[string]int, i int, again bool) (map[string]int, error) {
	s["r"+strconv.Itoa(i)]++
	f.folded = append(f.folded, i)
	f.again = append(f.again, again)
	if f.fails != nil {
		return s, f.fails(i)
	}
	return s, nil
}

func (f *folding) ItemIdentifier(i int) (id, name string) {
	if f.numbers != nil {
		return f.numbers[i], "sequence number"
	}
	return strconv.Itoa(i), "sequence number"
}

func (f *folding) Len() int {
	if f.numbers != nil {
		return len(f.numbers)
	}
	return 1000
}

// reportOf is a report of n records of which all succeeded, or those before the one that failed.
func reportOf(n, failed int, deadLettered ...int) *batch.Report {
	report := &batch.Report{Results: make([]batch.Result, n)}
	for i := range report.Results {
		result := &report.Results[i]
		switch result.Outcome = batch.Succeeded; {
		case slices.Contains(deadLettered, i):
			result.Outcome = batch.DeadLettered
		case failed >= 0 && i == failed:
			result.Outcome = batch.Failed
		case failed >= 0 && i > failed:
			result.Outcome = batch.Skipped
		}
	}
	return report
}

func failingAt(indexes ...int) func(int) error {
	return func(i int) error {
		for _, n := range indexes {
			if n == i {
				return errors.New("no")
			}
		}
		return nil
	}
}

func newTestFold(t *testing.T, records *folding) *fold[map[string]int] {
	t.Helper()
	f, err := newFold(Folded[map[string]int](records), `{"x":1}`)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func wantClose(t *testing.T, f *fold[map[string]int], ctx context.Context, failed int, want map[string]int, wantFailed int) {
	t.Helper()
	state, first, err := f.close(ctx, reportOf(f.Len(), failed))
	if again := errors.Is(err, errNotAgain); again != (failed != wantFailed) || (err != nil && !again) {
		t.Errorf("error is %v, want that the state could not be made again: %v", err, failed != wantFailed)
	}
	if diff := cmp.Diff(want, state); diff != "" || first != wantFailed {
		t.Errorf("first that is not in the state is %d, want %d, state (-want +got):\n%s", first, wantFailed, diff)
	}
}

// Without a failure the state is that of all records, and nothing is folded twice.
func TestFoldOfSuccess(t *testing.T) {
	records := &folding{}
	f := newTestFold(t, records)
	for i := range 3 {
		if err := f.Handle(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	wantClose(t, f, t.Context(), -1, map[string]int{"x": 1, "r0": 1, "r1": 1, "r2": 1}, -1)
	if len(records.folded) != 3 {
		t.Errorf("folded %v, want each once", records.folded)
	}
}

// A record that the batch tells as failed is not in the state, whatever its fold returned: it comes again.
func TestFoldThatSucceededAndFailed(t *testing.T) {
	for failed := range 3 {
		f := newTestFold(t, &folding{})
		for i := range failed + 1 {
			if err := f.Handle(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]int{"x": 1}
		for i := range failed {
			want["r"+strconv.Itoa(i)] = 1
		}
		wantClose(t, f, t.Context(), failed, want, failed)
	}
}

// After close nothing that a straggler reports is heard.
func TestFoldAfterClose(t *testing.T) {
	records := &folding{}
	f := newTestFold(t, records)
	if err := f.Handle(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	state, _, _ := f.close(t.Context(), reportOf(f.Len(), -1))
	before := map[string]int{"x": 1, "r0": 1}
	if diff := cmp.Diff(before, state); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if err := f.Handle(t.Context(), 1); !errors.Is(err, errAnswered) {
		t.Errorf("error is %v, want %v", err, errAnswered)
	}
	if diff := cmp.Diff(before, state); diff != "" || len(records.folded) != 1 {
		t.Errorf("folded %v after the answer, state (-want +got):\n%s", records.folded, diff)
	}
}

// A fold that ends after close does not enter the state, and its own error is the record's.
func TestFoldAcrossClose(t *testing.T) {
	records := &folding{}
	f := newTestFold(t, records)
	var state map[string]int
	records.fails = func(i int) error {
		if i == 1 && state == nil {
			state, _, _ = f.close(t.Context(), reportOf(f.Len(), 1))
		}
		return nil
	}
	if err := f.Handle(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Handle(t.Context(), 1); !errors.Is(err, errAnswered) {
		t.Errorf("error is %v, want %v", err, errAnswered)
	}
	if diff := cmp.Diff(map[string]int{"x": 1, "r0": 1}, state); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

// A fold that fails, panics or ends its goroutine when it is made again leaves the state as it was received.
func TestFoldThatCannotBeMadeAgain(t *testing.T) {
	for _, end := range []func() error{
		func() error { return errors.New("not again") }, func() error { panic("not again") }, func() error { runtime.Goexit(); return nil },
	} {
		first := true
		records := &folding{}
		records.fails = func(i int) error {
			if i == 2 {
				first = false
				return errors.New("no")
			}
			if !first && i == 1 {
				return end()
			}
			return nil
		}
		f := newTestFold(t, records)
		for i := range 3 {
			_ = f.Handle(t.Context(), i)
		}
		wantClose(t, f, t.Context(), 2, map[string]int{"x": 1}, 0)
	}
}

// To make the state again takes half of the time that is left, three quarters if it ignores that, and no more. Where no end
// is known, of a second.
func TestFoldLeavesTimeForTheAnswer(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration // 0: no deadline
		cancel  bool
		want    time.Duration
	}{
		{"deadline", 8 * time.Second, false, 6 * time.Second},
		{"no deadline", 0, false, batch.DefaultReserve * 3 / 4},
		{"cancelled", 0, true, batch.DefaultReserve * 3 / 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				hangs := false
				f := newTestFold(t, &folding{fails: func(i int) error {
					if i == 1 {
						hangs = true
						return errors.New("no")
					}
					if hangs {
						<-release
					}
					return nil
				}})
				_, _ = f.Handle(t.Context(), 0), f.Handle(t.Context(), 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.timeout > 0 {
					limited, cancelLimited := context.WithTimeout(ctx, test.timeout)
					defer cancelLimited()
					ctx = limited
				}
				if test.cancel {
					cancel()
				}
				begin := time.Now()
				wantClose(t, f, ctx, 1, map[string]int{"x": 1}, 0)
				if took := time.Since(begin); took != test.want {
					t.Errorf("close took %v, want %v", took, test.want)
				}
				close(release)
			})
		})
	}
}

// Behind a record that was given up the state is made again first: it may bear its mark.
func TestFoldBehindAFailure(t *testing.T) {
	records := &folding{fails: failingAt(1)}
	f := newTestFold(t, records)
	for i := range 3 {
		if err := f.Handle(t.Context(), i); (err != nil) != (i == 1) {
			t.Errorf("error of record %d is %v", i, err)
		}
	}
	wantClose(t, f, t.Context(), -1, map[string]int{"x": 1, "r0": 1, "r2": 1}, -1)
	if diff := cmp.Diff([]int{0, 1, 0, 2}, records.folded); diff != "" {
		t.Errorf("folded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bool{false, false, true, false}, records.again); diff != "" {
		t.Errorf("folded again (-want +got):\n%s", diff)
	}
	// If that is not possible, the record that is next fails, and is not lost.
	first := true
	f = newTestFold(t, &folding{fails: func(i int) error {
		if i == 1 {
			first = false
		}
		if i == 1 || (i == 0 && !first) {
			return errors.New("no")
		}
		return nil
	}})
	_, _ = f.Handle(t.Context(), 0), f.Handle(t.Context(), 1)
	if err := f.Handle(t.Context(), 2); err == nil {
		t.Error("no error behind a failure after which the state could not be made again")
	}
	wantClose(t, f, t.Context(), 2, map[string]int{"x": 1}, 0)
}

// After many records that were given up the state is not made from the beginning each time.
func TestFoldBehindManyFailures(t *testing.T) {
	const n = 200
	records := &folding{fails: func(i int) error {
		if i%2 == 1 {
			return errors.New("no")
		}
		return nil
	}}
	f := newTestFold(t, records)
	want := map[string]int{"x": 1}
	for i := range n {
		if err := f.Handle(t.Context(), i); (err != nil) != (i%2 == 1) {
			t.Fatalf("error of record %d is %v", i, err)
		}
		if i%2 == 0 {
			want["r"+strconv.Itoa(i)] = 1
		}
	}
	wantClose(t, f, t.Context(), -1, want, -1)
	if len(records.folded) > 2*n {
		t.Errorf("%d folds of %d records, want two of each at most", len(records.folded), n)
	}
}

// What was folded before the state was kept is not lost, however early the first failure is that is told.
func TestFoldThatIsToldAsFailedBeforeTheBase(t *testing.T) {
	for failed := range 4 {
		f := newTestFold(t, &folding{fails: failingAt(1)})
		for i := range 4 {
			_ = f.Handle(t.Context(), i)
		}
		want := map[string]int{"x": 1}
		for i := range failed {
			if i != 1 {
				want["r"+strconv.Itoa(i)] = 1
			}
		}
		wantClose(t, f, t.Context(), failed, want, failed)
	}
}

// A record that was folded and then dead-lettered, by its middleware, is not part of the state.
func TestFoldOfADeadLetteredRecord(t *testing.T) {
	f := newTestFold(t, &folding{})
	for i := range 3 {
		if err := f.Handle(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	state, first, err := f.close(t.Context(), reportOf(3, -1, 1))
	if diff := cmp.Diff(map[string]int{"x": 1, "r0": 1, "r2": 1}, state); err != nil || first != -1 || diff != "" {
		t.Errorf("error %v, first %d, state (-want +got):\n%s", err, first, diff)
	}
}

// Middleware that calls its handler twice folds a record once, also where it does so on two goroutines.
func TestFoldIsNotRepeatedByMiddleware(t *testing.T) {
	f := newTestFold(t, &folding{})
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			if err := f.Handle(t.Context(), 0); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	wantClose(t, f, t.Context(), -1, map[string]int{"x": 1, "r0": 1}, -1)
}

// What an error of a record that is folded again says about trying again is not about the record that waits for that.
func TestFoldBehindAFailureHidesPermanence(t *testing.T) {
	first := true
	f := newTestFold(t, &folding{fails: func(i int) error {
		if i == 1 || !first {
			first = false
			return batch.Permanent(errors.New("never"))
		}
		return nil
	}})
	_, _ = f.Handle(t.Context(), 0), f.Handle(t.Context(), 1)
	if err := f.Handle(t.Context(), 2); err == nil || batch.IsPermanent(err) {
		t.Errorf("error is %v, want one that is not permanent", err)
	}
}

// A long batch makes progress though its last fold was cut off: what there is to fold again is bounded, and the
// state that is kept meanwhile counts if even that takes too long.
func TestFoldOfALongBatchMakesProgress(t *testing.T) {
	for _, test := range []struct {
		name         string
		took, took2  time.Duration // of a record, and when it is folded again
		numbers      []string
		failed, want int
	}{
		{"in time", 10 * time.Millisecond, 10 * time.Millisecond, nil, 98, 98},
		{"too slow again", 10 * time.Millisecond, time.Hour, nil, 98, 95},
		{"slow records", time.Second, time.Hour, nil, 98, 98},
		{"aggregate", 10 * time.Millisecond, time.Hour, append(slices.Repeat([]string{"1"}, 50), slices.Repeat([]string{"2"}, 50)...), 98, 98},
		{"one aggregate", 10 * time.Millisecond, 10 * time.Millisecond, slices.Repeat([]string{"1"}, 100), 98, 98},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				records := &folding{numbers: test.numbers}
				records.fails = func(i int) error {
					if i == test.failed {
						return context.DeadlineExceeded
					}
					time.Sleep(test.took)
					if records.again[len(records.again)-1] {
						time.Sleep(test.took2 - test.took)
					}
					return nil
				}
				f := newTestFold(t, records)
				for i := range test.failed + 1 {
					_ = f.Handle(t.Context(), i)
				}
				ctx, cancel := context.WithTimeout(t.Context(), batch.DefaultReserve/2)
				defer cancel()
				state, first, err := f.close(ctx, reportOf(f.Len(), test.failed))
				if err != nil && !errors.Is(err, errNotAgain) {
					t.Fatal(err)
				}
				// The state has exactly the records before the checkpoint, which for an aggregate is its first.
				checkpoint := f.comesAgain(first)
				if first != test.want || len(state) != checkpoint+1 {
					t.Errorf("first is %d, want %d; state has %d records, want %d", first, test.want, len(state)-1, checkpoint)
				}
				time.Sleep(100 * time.Hour) // until what hangs has ended
			})
		})
	}
}
