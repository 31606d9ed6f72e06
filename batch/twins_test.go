package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

var errFingerprint = errors.New("another payload")

func TestSameIDTwice(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want []string
	}{
		{"succeeds", nil, []string{"a succeeded", "b succeeded", "a replayed", "a replayed"}},
		{"fails", errBoom, []string{"a failed: boom", "b succeeded", "a failed: boom", "a failed: boom"}},
	} {
		for _, n := range []int{1, 4} {
			t.Run(fmt.Sprint(test.name, " with concurrency ", n), func(t *testing.T) {
				var ran atomic.Int32
				report := process(t, t.Context(), newRecords("a b a a"), func(_ context.Context, r *batch.Record) error {
					if r.ID == "b" {
						return nil
					}
					ran.Add(1)
					return test.err
				}, concurrency(n))
				got := summary(report)
				if n > 1 {
					slices.Sort(got) // whichever starts first leads
					slices.Sort(test.want)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				if ran.Load() != 1 {
					t.Errorf("ran %d times, want once", ran.Load())
				}
			})
		}
	}
}

// What becomes of the leader, and what its followers share of it: one that comes while the leader is at work, and one
// that comes after it.
func TestFollowersShare(t *testing.T) {
	admit := func(a batch.Admission) func(*stages) {
		return func(s *stages) { s.admit = func(context.Context, int) batch.Admission { return a } }
	}
	settle := func(settled batch.Settlement) func(*stages) {
		return func(s *stages) {
			s.settle = func(context.Context, int, batch.Settlement) batch.Settlement { return settled }
		}
	}
	run := func(err error) func(*stages) {
		return func(s *stages) {
			s.run = func(context.Context, int) error { time.Sleep(10 * time.Second); return err }
		}
	}
	for _, test := range []struct {
		name             string
		leader           func(*stages)
		leads, followers string
	}{
		{"succeeds", run(nil), "succeeded", "replayed"},
		{"is replayed", admit(batch.Admission{Outcome: batch.Replayed}), "replayed", "replayed"},
		{"is ignored", admit(batch.Admission{Outcome: batch.Ignored}), "ignored", "ignored"},
		{"fails", run(errBoom), "failed: boom", "failed: boom"},
		{"is dead-lettered", run(batch.Permanent(errBoom)), "dead-lettered: boom", "failed: boom"},
		{"is in progress elsewhere", admit(batch.Admission{Outcome: batch.InProgress, Err: errBoom}), "in progress: boom", "in progress: boom"},
		{"is claimed too late", admit(batch.Admission{Deadline: time.UnixMilli(1)}),
			"skipped: batch: deadline is near", "skipped: batch: deadline is near"},
		{"is not recorded", settle(batch.Settlement{Outcome: batch.Succeeded, Err: errBoom, Unrecorded: true}),
			"succeeded, unrecorded: boom", "replayed, unrecorded: boom"},
		{"is abandoned", func(s *stages) {
			s.run = func(ctx context.Context, _ int) error { <-ctx.Done(); time.Sleep(time.Hour); return nil }
		}, abandoned[1:], abandoned[1:]},
		{"is held, then runs", func(s *stages) {
			var polls int
			s.admit = func(context.Context, int) batch.Admission {
				if polls++; polls < 3 {
					return batch.Admission{Outcome: batch.InProgress, Err: errBoom, RetryAt: time.Now().Add(time.Second)}
				}
				return batch.Admission{}
			}
		}, "succeeded", "replayed"},
		{"is held until the cut", func(s *stages) {
			s.admit = func(context.Context, int) batch.Admission {
				return batch.Admission{Outcome: batch.InProgress, Err: errBoom, RetryAt: time.Now().Add(time.Hour)}
			}
		}, "in progress: boom", "in progress: boom"},
		{"cannot be prepared", func(s *stages) {
			s.prepare = func(context.Context, int) (string, error) { return "", errBoom }
		}, "failed: boom", "failed: boom"},
	} {
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s with concurrency %d", test.name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					records := newRecords("leader F.1 F.2 G.1 end")
					s := &stages{}
					test.leader(s)
					// The stages under test are the leader's. Those of its followers, 1 and 3, are only counted.
					var calls trace
					all := &stages{
						prepare: func(ctx context.Context, i int) (string, error) {
							if i != 0 && i != 1 && i != 3 {
								return "", nil
							}
							switch i {
							case 1:
								time.Sleep(time.Nanosecond) // the leader is the first to be prepared
							case 3:
								time.Sleep(20 * time.Second) // the leader is done by now
							}
							if _, err := s.Prepare(ctx, i); err != nil {
								return "", err
							}
							return "key", nil
						},
						twin: func(leader, follower int) error { calls.add("twin %d %d", leader, follower); return nil },
						admit: func(ctx context.Context, i int) batch.Admission {
							switch i {
							case 0:
								return s.admitOne(ctx, i)
							case 1, 3:
								calls.add("admit %d", i)
							}
							return batch.Admission{}
						},
						run: func(ctx context.Context, i int) error {
							if i == 0 {
								return s.Run(ctx, i)
							}
							return nil
						},
						settle: func(ctx context.Context, i int, settled batch.Settlement) batch.Settlement {
							if i == 0 {
								return s.settleOne(ctx, i, settled)
							}
							if i == 1 || i == 3 {
								calls.add("settle %d", i)
							}
							return settled
						},
					}
					report := runStages(t, within(t, time.Minute), records, all, concurrency(n), func(o *batch.Options) {
						o.DeadLetter = func(context.Context, *batch.Record, error) error { return nil }
					})
					got := summary(report)
					// With one worker a hung leader takes the time of all that comes behind it.
					hung := test.name == "is abandoned" && n == 1
					followers := [2]string{test.followers, test.followers}
					if hung {
						followers = [2]string{skippedForDeadline[1:], skippedForDeadline[1:]}
					}
					want := []string{"leader " + test.leads, "F.1 " + followers[0], got[2], "G.1 " + followers[1]}
					if diff := cmp.Diff(want, got[:4]); diff != "" {
						t.Errorf("results (-want +got):\n%s", diff)
					}
					f1 := report.Results[1]
					if goesOn, done := report.Results[2].Outcome == batch.Succeeded, f1.Outcome.Done() && !f1.Unrecorded; goesOn != done {
						t.Errorf("follower is %q, and the next of its lane %q", got[1], got[2])
					}
					want = []string{"twin 0 1", "twin 0 3"}
					if test.name == "cannot be prepared" {
						want = []string{"settle 1", "settle 3"} // each fails by itself
					} else if hung {
						want = nil
					}
					if diff := cmp.Diff(want, calls.list()); diff != "" {
						t.Errorf("calls (-want +got):\n%s", diff)
					}
					time.Sleep(2 * time.Hour) // stragglers
				})
			})
		}
	}
}

// Lanes whose records are each other's twins, crosswise: who waits for whom is no circle.
func TestTwinsAcrossLanes(t *testing.T) {
	for _, words := range []string{
		"A.x A.y B.y B.x", "A.x B.y A.y B.x", "A.x A.y A.z B.z B.y B.x C.y C.x C.z", "A.x B.x A.x B.x", "A.x A.x A.x",
	} {
		for _, n := range []int{1, 2, 3, 10} {
			t.Run(fmt.Sprintf("%s with concurrency %d", words, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					records := newRecords(words)
					keys := make([]string, len(records))
					classes := map[string]bool{}
					for i := range records {
						keys[i] = records[i].ID[2:]
						classes[keys[i]] = true
						records[i].ID = fmt.Sprint(i)
					}
					ran := map[string]*atomic.Int32{}
					for key := range classes {
						ran[key] = new(atomic.Int32)
					}
					report := runStages(t, t.Context(), records, &stages{
						prepare: func(_ context.Context, i int) (string, error) { return keys[i], nil },
						run: func(_ context.Context, i int) error {
							time.Sleep(time.Duration(i+1) * time.Second)
							ran[keys[i]].Add(1)
							return nil
						},
					}, concurrency(n))
					if got := report.Count(batch.Succeeded); got != len(classes) {
						t.Errorf("%d succeeded, want one of each of %d keys: %q", got, len(classes), summary(report))
					}
					if got := report.Count(batch.Replayed); got != len(records)-len(classes) {
						t.Errorf("%d replayed, want the other %d: %q", got, len(records)-len(classes), summary(report))
					}
					for key, n := range ran {
						if n.Load() != 1 {
							t.Errorf("key %s ran %d times, want once", key, n.Load())
						}
					}
					for i := range report.Results {
						if got := report.Results[i].Record.Key; got != keys[i] {
							t.Errorf("record %d has the key %q, want %q", i, got, keys[i])
						}
					}
				})
			})
		}
	}
}

// The same key with another payload is no twin: it fails by itself, and is settled.
func TestNoTwins(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want []string
	}{
		{"to be tried again", errFingerprint, []string{"a succeeded", "B.1 failed: another payload", "B.2" + skippedForOrder}},
		{"for good", batch.Permanent(errFingerprint), []string{"a succeeded", "B.1 dead-lettered: another payload", "B.2 succeeded"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls trace
			report := runStages(t, t.Context(), newRecords("a B.1 B.2"), &stages{
				prepare: func(_ context.Context, i int) (string, error) {
					if i == 2 {
						return "other", nil
					}
					return "key", nil
				},
				twin:  func(leader, follower int) error { calls.add("twin %d %d", leader, follower); return test.err },
				admit: func(_ context.Context, i int) batch.Admission { calls.add("admit %d", i); return batch.Admission{} },
				settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
					calls.add("settle %d %v", i, s.Outcome)
					return s
				},
			}, concurrency(1), func(o *batch.Options) {
				o.DeadLetter = func(context.Context, *batch.Record, error) error { return nil }
			})
			if diff := cmp.Diff(test.want, summary(report)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			want := []string{"admit 0", "settle 0 succeeded", "twin 0 1", "settle 1 " + report.Results[1].Outcome.String()}
			if diff := cmp.Diff(want, calls.list()[:4]); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoIsATwin(t *testing.T) {
	type name struct{ id, key string }
	for _, test := range []struct {
		about string
		names []name
		want  int // that run
	}{
		{"same ID, no key", []name{{"a", ""}, {"a", ""}}, 1},
		{"same key, other ID", []name{{"a", "k"}, {"b", "k"}}, 1},
		{"same ID, other key", []name{{"a", "k"}, {"a", "l"}}, 2},
		{"a key that looks like an ID", []name{{"a", ""}, {"b", "a"}, {"a", "b"}}, 3},
		{"neither", []name{{"", ""}, {"", ""}}, 2},
		{"no ID, same key", []name{{"", "k"}, {"", "k"}, {"", ""}}, 2},
	} {
		t.Run(test.about, func(t *testing.T) {
			records := make([]batch.Record, len(test.names))
			for i, n := range test.names {
				records[i].ID = n.id
			}
			var ran atomic.Int32
			report := runStages(t, t.Context(), records, &stages{
				prepare: func(_ context.Context, i int) (string, error) { return test.names[i].key, nil },
				run:     func(context.Context, int) error { ran.Add(1); return nil },
			})
			if int(ran.Load()) != test.want || report.Failed() > 0 {
				t.Errorf("%d of %v ran, want %d", ran.Load(), report, test.want)
			}
		})
	}
}

// A follower waits without a worker.
func TestFollowersHoldNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		report := process(t, t.Context(), newRecords("a a a a b c d e"), func(_ context.Context, r *batch.Record) error {
			time.Sleep(time.Second)
			if r.ID == "a" {
				time.Sleep(time.Minute)
			}
			return nil
		}, concurrency(2))
		if took := time.Since(begin); took != 61*time.Second {
			t.Errorf("took %v, want the 61s of the leader", took)
		}
		if got := report.Results[7].Duration; got != time.Second {
			t.Errorf("last took %v, want 1s", got)
		}
		if got := report.Results[3].Duration; got != 61*time.Second {
			t.Errorf("follower took %v, want 61s with its wait", got)
		}
	})
}

// The sink has the leader. A copy of it is the same record; another one with its key the sink has not seen, so it comes back
// and stops its lane.
func TestFollowersOfADeadLettered(t *testing.T) {
	var sunk trace
	records := []batch.Record{
		{ID: "a", Key: "k"}, {ID: "a", Key: "k"}, {ID: "b", Key: "k", Lane: "L"}, {ID: "c", Key: "l", Lane: "L"},
		{Key: "m"}, {Key: "m"},
	}
	report := process(t, t.Context(), records, func(context.Context, *batch.Record) error { return batch.Permanent(errBoom) },
		concurrency(1), func(o *batch.Options) {
			o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error { sunk.add("%s %s", r.ID, r.Key); return nil }
		})
	want := []string{
		"a dead-lettered: boom", "a dead-lettered: boom", "b failed: boom", "c" + skippedForOrder,
		" dead-lettered: boom", " failed: boom",
	}
	if diff := cmp.Diff(want, summary(report)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a k", " m"}, sunk.list()); diff != "" {
		t.Errorf("sunk (-want +got):\n%s", diff)
	}
}

// Process takes the keys that its caller has set.
func TestTwinsByKeyInProcess(t *testing.T) {
	var ran trace
	records := []batch.Record{{ID: "a", Key: "k"}, {ID: "b", Key: "k"}, {ID: "a", Key: "l"}, {ID: "a"}, {ID: "a"}}
	report := process(t, t.Context(), records, func(_ context.Context, r *batch.Record) error {
		ran.add("%s %q", r.ID, r.Key)
		return nil
	}, concurrency(1))
	want := []string{"a succeeded", "b replayed", "a succeeded", "a succeeded", "a replayed"}
	if diff := cmp.Diff(want, summary(report)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`a "k"`, `a "l"`, `a ""`}, ran.list()); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
}
