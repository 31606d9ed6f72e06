package batch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

// allHooks implements every hook.
type allHooks struct {
	*trace
	name string
	do   func()
}

func (h allHooks) OnBatchStarted(ctx context.Context, records []batch.Record) {
	h.add("%s: batch of %d started, %v", h.name, len(records), ctx.Value(middlewareKey("ctx")))
	h.do()
}

func (h allHooks) OnRecordFinished(ctx context.Context, r *batch.Result) {
	h.add("%s: %s, %v", h.name, summarize(r), ctx.Value(middlewareKey("ctx")))
	h.do()
}

func (h allHooks) OnBatchFinished(ctx context.Context, r *batch.Report) {
	h.add("%s: batch finished with %d of %d failed, %v", h.name, r.Failed(), len(r.Results), ctx.Value(middlewareKey("ctx")))
	h.do()
}

// Every record is told of once, whatever became of it, between the start and the end of its batch. A hook that panics
// costs neither the other hooks nor the batch anything.
func TestHooks(t *testing.T) {
	for _, panics := range []bool{false, true} {
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprintf("panics %v, concurrency %d", panics, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var told, logged trace
					wake := make(chan struct{})
					first := allHooks{&told, "first", func() {
						if panics {
							panic("hook")
						}
					}}
					second := allHooks{&told, "second", func() {}}
					ctx := context.WithValue(within(t, time.Minute), middlewareKey("ctx"), "value")
					report := runStages(t, ctx, newRecords("ok undecodable replayed A.fails A.skipped ok held hangs late"), &stages{
						prepare: func(_ context.Context, i int) (string, error) {
							if i == 1 {
								return "", errBoom
							}
							return "", nil
						},
						admit: func(_ context.Context, i int) (a batch.Admission) {
							switch i {
							case 2:
								a.Outcome = batch.Replayed
							case 6:
								a = held(time.Now().Add(time.Hour))
							}
							return a
						},
						run: func(ctx context.Context, i int) error {
							switch i {
							case 3:
								return errBoom
							case 7:
								<-wake
							case 8:
								<-ctx.Done()
							}
							return nil
						},
					}, concurrency(n), logTo(&logged), func(o *batch.Options) { o.Hooks = []batch.Hook{first, second} })
					close(wake)
					synctest.Wait()

					want := summary(report)
					for i := range want {
						want[i] += ", value"
					}
					slices.Sort(want)
					for _, name := range []string{"first", "second"} {
						var got []string
						for _, line := range told.list() {
							if line, ok := strings.CutPrefix(line, name+": "); ok {
								got = append(got, line)
							}
						}
						if len(got) != len(want)+2 {
							t.Fatalf("%s hook was told %q, want the batch's start and end, and %q", name, got, want)
						}
						if start, end := got[0], got[len(got)-1]; start != "batch of 9 started, value" ||
							end != fmt.Sprintf("batch finished with %d of 9 failed, value", report.Failed()) {
							t.Errorf("%s hook was told %q first and %q last", name, start, end)
						}
						got = got[1 : len(got)-1]
						slices.Sort(got)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("%s hook (-want +got):\n%s", name, diff)
						}
					}
					complaints := 0
					for _, line := range logged.list() {
						if line == `level=ERROR msg="batch hook panicked" panic=hook` {
							complaints++
						}
					}
					if wantComplaints := map[bool]int{true: 11}[panics]; complaints != wantComplaints {
						t.Errorf("logged %d panics of hooks, want %d", complaints, wantComplaints)
					}
				})
			})
		}
	}
}

// The hook of the last record, too, has returned before the batch is finished and Process returns.
func TestHooksReturnBeforeProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var told trace
		process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { return nil }, func(o *batch.Options) {
			o.Hooks = []batch.Hook{
				finishedFunc(func(*batch.Result) { time.Sleep(time.Second); told.add("record finished") }),
				batchFinishedFunc(func(*batch.Report) { told.add("batch finished") }),
			}
		})
		if diff := cmp.Diff([]string{"record finished", "batch finished"}, told.list()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("Process took %v, want the 1s of the hook", took)
		}
	})
}

// A hook that ends its goroutine, as FailNow of a test does, ends no batch.
func TestHookExits(t *testing.T) {
	report := process(t, t.Context(), newRecords("a b A.1 A.2"), func(_ context.Context, r *batch.Record) error {
		if r.ID == "A.1" {
			return errBoom
		}
		return nil
	}, func(o *batch.Options) {
		o.Hooks = []batch.Hook{finishedFunc(func(*batch.Result) { _ = exit() })}
	}, concurrency(2))
	want := []string{"a succeeded", "b succeeded", "A.1 failed: boom", "A.2" + skippedForOrder}
	if diff := cmp.Diff(want, summary(report)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// A hook that implements one of the interfaces is called for that alone.
func TestHooksOfOneMethod(t *testing.T) {
	var told trace
	process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { return nil }, func(o *batch.Options) {
		o.Hooks = []batch.Hook{
			startedFunc(func() { told.add("started") }),
			finishedFunc(func(r *batch.Result) { told.add("%s", r.Record.ID) }),
			batchFinishedFunc(func(r *batch.Report) { told.add("finished") }),
		}
	})
	if diff := cmp.Diff([]string{"started", "a", "finished"}, told.list()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
