package stream

import (
	"context"
	"fmt"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/internal/pipeline"
)

// Source is the records of one event.
type Source interface {
	pipeline.Source
	// ItemIdentifier returns what names the record in an answer, or "" if it has none that Lambda would know, and what that
	// is called. Records of one aggregate have one.
	ItemIdentifier(i int) (id, name string)
}

// Run runs the records and returns the item identifiers to answer with: none, or that of the first failed record.
func (c *Config) Run(ctx context.Context, records []batch.Record, source Source, shards *Shards) ([]string, error) {
	return c.Answer(c.Report(ctx, records, source), source, shards)
}

// Report runs the records and returns what became of them.
func (c *Config) Report(ctx context.Context, records []batch.Record, source Source) *batch.Report {
	return pipeline.Run(ctx, records, source, &c.pipeline)
}

// Answer returns the item identifiers that tell what the report says.
func (c *Config) Answer(report *batch.Report, source Source, shards *Shards) ([]string, error) {
	failed, err := c.answer(report, source, shards)
	return failed, c.error(err)
}

func (c *Config) answer(report *batch.Report, source Source, shards *Shards) ([]string, error) {
	if err := report.Err(c.pipeline.Batch.ErrorOn); err != nil {
		return nil, err
	}
	first := FirstFailed(report)
	if first < 0 {
		return nil, nil
	}
	result := &report.Results[first]
	return c.checkpoint(first, result.Record.ID, result.Err, source, shards)
}

// checkpoint returns the item identifiers that make the shard come again from record i on.
//
// Lambda takes the lowest sequence number of an answer as its checkpoint, and delivers everything from there on again,
// whatever else the answer names (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html).
// The lowest is the first in the batch: sequence numbers are in order there, but differ in length.
func (c *Config) checkpoint(i int, id string, cause error, source Source, shards *Shards) ([]string, error) {
	if shards.Mixed() {
		_, mixed := shards.One()
		return nil, fmt.Errorf("%w: record %.200q failed, and an answer names one place in one shard, so the whole batch has "+
			"to come back: %w", mixed, id, cause)
	}
	item, name := source.ItemIdentifier(i)
	if item == "" {
		return nil, fmt.Errorf("record %d has no %s and failed, so the whole batch has to come back: %w", i, name, cause)
	}
	return []string{item}, nil
}

// error returns err as the package's, or nil.
func (c *Config) error(err error) error {
	if _, ok := err.(*batch.FailedError); err == nil || ok { // which is the engine's, and says so
		return err
	}
	return fmt.Errorf("%s: %w", c.source, err)
}

// FirstFailed returns the index of the first record that is not done, or -1.
func FirstFailed(report *batch.Report) int {
	for i := range report.Results {
		if !report.Results[i].Outcome.Done() {
			return i
		}
	}
	return -1
}
