package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/examples/clicks/internal/simulation"
	"github.com/oncekit/oncekit/examples/internal/report"
	"github.com/oncekit/oncekit/idempotency"
)

const introduction = `%s, seed %d, on 3 shards of a stream in memory. This takes about eight seconds.
The same stream is read three times: by the handler with its guard; by a loop written by hand that goes on behind a
failure and reports all that failed; and by one that stops at its first failure.

`

// readers are the readers of the stream, and what the table calls them.
var readers = []struct {
	reader simulation.Reader
	title  string
}{
	{simulation.Oncekit, "oncekit"}, {simulation.LoopGoesOn, "loop goes on"}, {simulation.LoopStops, "loop stops"},
}

// simulate runs the simulation with each reader, and prints what came of it.
func simulate(ctx context.Context, f flags, stdout io.Writer) error {
	fmt.Fprintf(stdout, introduction, report.Count(f.clicks, "click", "clicks"), f.seed)
	status := &status{progress: report.NewProgress(stdout), clicks: f.clicks, appended: make([]int, len(readers))}
	results := make([]*simulation.Result, len(readers))
	group, ctx := errgroup.WithContext(ctx)
	for i, r := range readers {
		group.Go(func() (err error) {
			results[i], err = simulation.Run(ctx, simulation.Config{
				Seed: f.seed, Clicks: f.clicks, Reader: r.reader, Store: idempotency.NewMemoryStore(),
				Progress: func(appended int) { status.show(i, appended) },
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	status.progress.End()
	if err := printResults(stdout, results); err != nil {
		return err
	}
	return verdict(results[0])
}

// verdict is an error if oncekit did not keep its word.
func verdict(r *simulation.Result) error {
	var errs []error
	if lost := len(r.Lost); lost > 0 {
		errs = append(errs, fmt.Errorf("%s lost: %s", report.Count(lost, "click was", "clicks were"), strings.Join(r.Lost, ", ")))
	}
	if wrong := len(r.OutOfOrder) + r.RedeliveredOutOfOrder; wrong > 0 {
		errs = append(errs, fmt.Errorf("%s out of order", report.Count(wrong, "click was", "clicks were")))
	}
	if unexplained := r.Unexplained(); unexplained > 0 {
		errs = append(errs, fmt.Errorf("%s without a reason",
			report.Count(unexplained, "click was repeated", "clicks were repeated")))
	}
	return errors.Join(errs...)
}

// status shows how many clicks each reader has appended.
type status struct {
	progress *report.Progress
	clicks   int

	mu       sync.Mutex
	appended []int
}

func (s *status) show(reader, appended int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appended[reader] = max(s.appended[reader], appended)
	s.progress.Show(s.line(), false)
}

// line fits on a terminal.
func (s *status) line() string {
	parts := make([]string, len(readers))
	for i, r := range readers {
		parts[i] = fmt.Sprintf("%s %d", r.title, s.appended[i])
	}
	return fmt.Sprintf("of %d clicks: %s", s.clicks, strings.Join(parts, ", "))
}
