package batch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

// One line for each record that is not done, or is done in a way that someone should know of; one for the batch. No line
// has anything of the record's value.
func TestLogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		var logged trace
		records := newRecords("ok replayed ignored fails A.dead A.progress A.skipped unrecorded hangs")
		for i := range records {
			records[i].Value = "secret"
			records[i].Source = "arn:aws:sqs:eu-central-1:123456789012:orders"
			records[i].Attempt = i
		}
		runStages(t, within(t, time.Minute), records, &stages{
			admit: func(_ context.Context, i int) (a batch.Admission) {
				switch i {
				case 1:
					a.Outcome = batch.Replayed
				case 2:
					a.Outcome = batch.Ignored
				case 5:
					a.Outcome, a.Err = batch.InProgress, errHeld
				}
				return a
			},
			run: func(_ context.Context, i int) error {
				time.Sleep(time.Second)
				switch i {
				case 3:
					return batch.RetryAfter(time.Minute, errBoom)
				case 4:
					return batch.Permanent(errBoom)
				case 8:
					<-wake
				}
				return nil
			},
			settle: func(_ context.Context, i int, s batch.Settlement) batch.Settlement {
				if i == 7 {
					s.Unrecorded, s.Err = true, errSink
				}
				return s
			},
		}, concurrency(1), logTo(&logged), func(o *batch.Options) {
			o.DeadLetter = func(context.Context, *batch.Record, error) error { return nil }
		})
		const source = ` source=arn:aws:sqs:eu-central-1:123456789012:orders`
		want := []string{
			`level=ERROR msg="record failed" record=fails outcome=failed` + source + ` attempt=3 error=boom`,
			`level=WARN msg="record dead-lettered" record=A.dead outcome=dead-lettered` + source + ` attempt=4 error=boom`,
			`level=WARN msg="record in progress" record=A.progress outcome="in progress"` + source + ` attempt=5 error="held elsewhere"`,
			`level=DEBUG msg="record skipped" record=A.skipped outcome=skipped` + source + ` attempt=6 error="batch: an earlier record failed"`,
			`level=WARN msg="record succeeded" record=unrecorded outcome=succeeded` + source + ` attempt=7 unrecorded=true error="queue is gone"`,
			`level=ERROR msg="record failed" record=hangs outcome=abandoned` + source +
				` attempt=8 error="batch: record was still at work when the answer had to go"`,
			`level=INFO msg="batch finished" records=9 failed=4 duration=59.5s succeeded=2 replayed=1 dead_lettered=1 ignored=1` +
				` in_progress=1 skipped=1 abandoned=1 unrecorded=1`,
		}
		if diff := cmp.Diff(want, logged.list()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		close(wake)
		synctest.Wait()
	})
}

func TestLogStack(t *testing.T) {
	var logged trace
	process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { panic("ouch") }, logTo(&logged))
	lines := logged.list()
	const prefix = `level=ERROR msg="record failed" record=a outcome=failed error="batch: panic: ouch" stack="goroutine `
	if len(lines) != 2 || !strings.HasPrefix(lines[0], prefix) || !strings.Contains(lines[0], "batch_test.TestLogStack.func1") {
		t.Errorf("logged %q, want one line that begins with %q and shows the handler", lines, prefix)
	}

	logged = trace{}
	process(t, t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { return exit() }, logTo(&logged))
	want := `level=ERROR msg="record failed" record=a outcome=failed error="batch: panic(nil) or runtime.Goexit"`
	if got := logged.list()[0]; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// The summary of a batch in which all is well is for debugging only, since log volume costs money.
func TestLogSummary(t *testing.T) {
	for _, test := range []struct {
		name    string
		settled batch.Settlement
		level   string
	}{
		{"succeeded", batch.Settlement{Outcome: batch.Succeeded}, "DEBUG"},
		{"replayed", batch.Settlement{Outcome: batch.Replayed}, "DEBUG"},
		{"dead-lettered", batch.Settlement{Outcome: batch.DeadLettered, Err: errBoom}, "DEBUG"},
		{"unrecorded", batch.Settlement{Outcome: batch.Succeeded, Unrecorded: true}, "INFO"},
		{"failed", batch.Settlement{Outcome: batch.Failed, Err: errBoom}, "INFO"},
		{"in progress", batch.Settlement{Outcome: batch.InProgress, Err: errBoom}, "INFO"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var logged trace
			runStages(t, t.Context(), newRecords("a"), &stages{
				settle: func(context.Context, int, batch.Settlement) batch.Settlement { return test.settled },
			}, logTo(&logged))
			lines := logged.list()
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, "level="+test.level+` msg="batch finished" records=1 failed=`) {
				t.Errorf("summary = %q, want it at %s", last, test.level)
			}
		})
	}
}

// Without a logger of its own a batch logs to the default one. What that does not want, it is not asked for.
func TestDefaultLogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var logged trace
	slog.SetDefault(slog.New(levelHandler{slog.LevelInfo, newLogHandler(&logged)}))
	report, err := batch.Process(t.Context(), newRecords("A.1 A.2"), func(context.Context, *batch.Record) error { return errBoom })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`level=ERROR msg="record failed" record=A.1 outcome=failed error=boom`,
		`level=INFO msg="batch finished" records=2 failed=2 duration=` + report.Duration.String() + ` skipped=1`,
	}
	if diff := cmp.Diff(want, logged.list()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	logged = trace{}
	if _, err := batch.Process(t.Context(), newRecords("a"), func(context.Context, *batch.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := logged.list(); got != nil {
		t.Errorf("logged %q for a batch in which all is well, want nothing", got)
	}
}

type levelHandler struct {
	level slog.Level
	slog.Handler
}

func (h levelHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// What a log handler takes from the context, such as a request ID, it finds in the batch's.
func TestLogContext(t *testing.T) {
	var logged trace
	h := &contextHandler{Handler: newLogHandler(new(trace)), values: &logged}
	ctx := context.WithValue(t.Context(), middlewareKey("ctx"), "request 1")
	process(t, ctx, newRecords("a"), func(context.Context, *batch.Record) error { return errors.New("x") },
		func(o *batch.Options) { o.Logger = slog.New(h) })
	if diff := cmp.Diff([]string{"request 1", "request 1"}, logged.list()); diff != "" {
		t.Errorf("contexts (-want +got):\n%s", diff)
	}
}

type contextHandler struct {
	slog.Handler
	values *trace
}

func (h *contextHandler) Handle(ctx context.Context, r slog.Record) error {
	h.values.add("%v", ctx.Value(middlewareKey("ctx")))
	return h.Handler.Handle(ctx, r)
}
