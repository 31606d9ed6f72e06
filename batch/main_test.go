package batch_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newRecords makes a record of each word: its ID is the word, its lane what precedes a dot. "A.1 A.2 x" are two records
// of lane A and one without a lane.
func newRecords(words string) []batch.Record {
	var records []batch.Record
	for word := range strings.FieldsSeq(words) {
		r := batch.Record{ID: word}
		if lane, _, ok := strings.Cut(word, "."); ok {
			r.Lane = lane
		}
		records = append(records, r)
	}
	return records
}

// numbered makes n records without lanes.
func numbered(n int) []batch.Record {
	records := make([]batch.Record, n)
	for i := range records {
		records[i].ID = fmt.Sprint("r", i)
	}
	return records
}

// process runs a batch that must be accepted. It logs nothing unless an option says so.
func process(t *testing.T, ctx context.Context, records []batch.Record, h batch.Handler, optFns ...func(*batch.Options)) *batch.Report {
	t.Helper()
	report, err := batch.Process(ctx, records, h, append([]func(*batch.Options){quiet}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func quiet(o *batch.Options) { o.Logger = slog.New(slog.DiscardHandler) }

func concurrency(n int) func(*batch.Options) { return func(o *batch.Options) { o.Concurrency = n } }

// runStages runs a batch through stages of the test's own.
func runStages(t *testing.T, ctx context.Context, records []batch.Record, s batch.Stages, optFns ...func(*batch.Options)) *batch.Report {
	t.Helper()
	var options batch.Options
	quiet(&options)
	for _, fn := range optFns {
		fn(&options)
	}
	if err := options.Validate(); err != nil {
		t.Fatal(err)
	}
	return batch.RunStages(ctx, records, s, &options)
}

// stages is batch.Stages made of functions. Those that are nil do nothing and admit everything.
type stages struct {
	groups  batch.Groups
	group   func(records []int) // called for each group to be admitted
	begin   func(i int) error
	prepare func(ctx context.Context, i int) (string, error)
	twin    func(leader, follower int) error
	admit   func(ctx context.Context, i int) batch.Admission
	run     func(ctx context.Context, i int) error
	settle  func(ctx context.Context, i int, s batch.Settlement) batch.Settlement
}

func (s *stages) Prepare(ctx context.Context, i int) (string, error) {
	if s.prepare == nil {
		return "", nil
	}
	return s.prepare(ctx, i)
}

func (s *stages) Twin(leader, follower int) error {
	if s.twin == nil {
		return nil
	}
	return s.twin(leader, follower)
}

func (s *stages) Groups() batch.Groups { return s.groups }

func (s *stages) Admit(ctx context.Context, records []int, admissions []batch.Admission) {
	if s.group != nil {
		s.group(records)
	}
	each(len(records), func(k int) { admissions[k] = s.admitOne(ctx, records[k]) })
}

// each calls f for each of n records at once, and panics or exits if one of them does.
func each(n int, f func(k int)) {
	if n == 1 {
		f(0)
		return
	}
	var group sync.WaitGroup
	caught := make([]any, n)
	for k := range n {
		group.Go(func() {
			returned := false
			defer func() {
				if !returned {
					caught[k] = orExited(recover())
				}
			}()
			f(k)
			returned = true
		})
	}
	group.Wait()
	for _, value := range caught {
		if value != nil {
			panic(value)
		}
	}
}

func (s *stages) admitOne(ctx context.Context, i int) batch.Admission {
	if s.admit == nil {
		return batch.Admission{}
	}
	return s.admit(ctx, i)
}

func (s *stages) Begin(i int) error {
	if s.begin == nil {
		return nil
	}
	return s.begin(i)
}

func (s *stages) Run(ctx context.Context, i int) error {
	if s.run == nil {
		return nil
	}
	return s.run(ctx, i)
}

func (s *stages) Settle(ctx context.Context, records []int, settlements []batch.Settlement) {
	each(len(records), func(k int) { settlements[k] = s.settleOne(ctx, records[k], settlements[k]) })
}

func (s *stages) settleOne(ctx context.Context, i int, settled batch.Settlement) batch.Settlement {
	if s.settle == nil {
		return settled
	}
	return s.settle(ctx, i, settled)
}

// summary is a line for each result: "A.1 succeeded", "A.2 failed: boom", "x replayed, unrecorded".
func summary(r *batch.Report) []string {
	lines := make([]string, len(r.Results))
	for i := range r.Results {
		lines[i] = summarize(&r.Results[i])
	}
	return lines
}

func summarize(r *batch.Result) string {
	line := fmt.Sprintf("%s %v", r.Record.ID, r.Outcome)
	if r.Unrecorded {
		line += ", unrecorded"
	}
	if r.Err != nil {
		line += ": " + strings.ReplaceAll(r.Err.Error(), "\n", "; ")
	}
	return line
}

// trace is what happened, in order. Its zero value is empty.
type trace struct {
	mu    sync.Mutex
	lines []string
}

func (tr *trace) add(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, fmt.Sprintf(format, args...))
}

func (tr *trace) list() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]string(nil), tr.lines...)
}

// logTo makes the options log to a trace: a line a record, from Debug on, without the time.
func logTo(tr *trace) func(*batch.Options) {
	return func(o *batch.Options) { o.Logger = slog.New(newLogHandler(tr)) }
}

type lineWriter struct{ *trace }

func (w lineWriter) Write(p []byte) (int, error) {
	w.add("%s", bytes.TrimSuffix(p, []byte("\n")))
	return len(p), nil
}

func newLogHandler(tr *trace) slog.Handler {
	return slog.NewTextHandler(lineWriter{tr}, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		},
	})
}

// gauge measures how many are inside at once.
type gauge struct {
	mu       sync.Mutex
	now, max int
}

func (g *gauge) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.max = max(g.max, g.now)
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

func (g *gauge) most() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.max
}

// exit ends the goroutine. It is a function with a result, so that a handler can end in it.
func exit() error {
	runtime.Goexit()
	return nil
}

func orExited(value any) any {
	if value == nil {
		return "exited"
	}
	return value
}
