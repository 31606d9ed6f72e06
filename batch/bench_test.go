package batch_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/oncekit/oncekit/batch"
)

// benchmarkRecords have IDs and lanes of the length that real ones have, four records to a lane.
func benchmarkRecords(n int) []batch.Record {
	records := make([]batch.Record, n)
	for i := range records {
		records[i] = batch.Record{
			ID:      fmt.Sprintf("059f36b4-87a3-44ab-83d2-%012d", i),
			Lane:    fmt.Sprintf("customer-%06d", i/4),
			Source:  "arn:aws:sqs:eu-central-1:123456789012:orders.fifo",
			Attempt: 1,
		}
	}
	return records
}

// BenchmarkProcess is the engine alone, beside the loop that it replaces. Time a record is in ns/record.
func BenchmarkProcess(b *testing.B) {
	handler := func(context.Context, *batch.Record) error { return nil }
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, n := range []int{10, 1000} {
		records := benchmarkRecords(n)
		perRecord := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
		}
		b.Run(fmt.Sprintf("records=%d/loop", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range records {
					if err := handler(b.Context(), &records[i]); err != nil {
						b.Fatal(err)
					}
				}
			}
			perRecord(b)
		})
		b.Run(fmt.Sprintf("records=%d/oncekit", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				report, err := batch.Process(b.Context(), records, handler, func(o *batch.Options) {
					o.Concurrency = 1
					o.Logger = logger
				})
				if err != nil || report.Failed() > 0 {
					b.Fatal(report, err)
				}
			}
			perRecord(b)
		})
	}
}

// noStages are stages that do nothing.
type noStages struct{ groups batch.Groups }

func (s *noStages) Prepare(context.Context, int) (string, error)            { return "", nil }
func (s *noStages) Twin(int, int) error                                     { return nil }
func (s *noStages) Groups() batch.Groups                                    { return s.groups }
func (s *noStages) Admit(_ context.Context, _ []int, _ []batch.Admission)   {}
func (s *noStages) Begin(int) error                                         { return nil }
func (s *noStages) Run(context.Context, int) error                          { return nil }
func (s *noStages) Settle(_ context.Context, _ []int, _ []batch.Settlement) {}

// BenchmarkRunStages is the engine alone, with groups and without: what it costs to hand records from workers to calls.
func BenchmarkRunStages(b *testing.B) {
	const n = 1000
	for _, lanes := range []bool{false, true} {
		for _, groups := range []batch.Groups{{}, {Admit: 100, Settle: 25}} {
			b.Run(fmt.Sprintf("lanes=%v/groups=%d", lanes, groups.Admit), func(b *testing.B) {
				options := &batch.Options{Logger: slog.New(slog.DiscardHandler)}
				records := benchmarkRecords(n)
				if !lanes {
					for i := range records {
						records[i].Lane = ""
					}
				}
				b.ReportAllocs()
				for b.Loop() {
					if report := batch.RunStages(b.Context(), records, &noStages{groups}, options); report.Failed() > 0 {
						b.Fatal(report)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
			})
		}
	}
}
