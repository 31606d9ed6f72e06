//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// result is what came of a run.
type result struct {
	verdict
	config config
	faults *faults
	counts map[string]int // of the journal's entries
	missed []string       // what has not happened often enough
	took   time.Duration
}

// read reads the tables, and judges the run.
func (r *run) read(ctx context.Context, h *history) (*result, error) {
	e := evidence{
		history: h, processes: r.processes, messages: r.queue.messages,
		rows: make(map[string]row), effects: make(map[string][]string), times: make(map[string]int),
	}
	err := r.scan(ctx, r.claims, func(item map[string]types.AttributeValue) error {
		key, ok := strings.CutPrefix(textOf(item["id"]), "chaos#")
		if !ok {
			return fmt.Errorf("chaos: claim of %q; want the namespace chaos", textOf(item["id"]))
		}
		e.rows[key] = row{status: textOf(item["status"]), owner: textOf(item["owner"])}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = r.scan(ctx, r.effects, func(item map[string]types.AttributeValue) error {
		if key, ok := strings.CutPrefix(textOf(item["id"]), rowPrefix); ok {
			times, err := strconv.Atoi(textOf(item["times"]))
			e.times[key] = times
			return err
		}
		key := textOf(item["key"])
		e.effects[key] = append(e.effects[key], textOf(item["owner"]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &result{
		verdict: judge(e), config: r.config, faults: &r.faults, counts: h.counts,
		missed: r.config.least.missed(&r.faults, h),
	}, nil
}

func (r *run) scan(ctx context.Context, table string, each func(map[string]types.AttributeValue) error) error {
	pages := dynamodb.NewScanPaginator(r.client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("chaos: table %s: %w", table, err)
		}
		for _, item := range page.Items {
			if err := each(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// textOf returns the text of an S or N, and nothing of others.
func textOf(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// maxWrong is how much of what is wrong is printed.
const maxWrong = 20

// print prints the figures.
func (r *result) print(w io.Writer) {
	f := r.faults
	of := func(kind idempotency.EventKind) int { return r.counts[name(kind)] }
	fmt.Fprintf(w, "seed %d, %d workers at a time, %v, %s/%s, %d CPUs\n\n",
		r.config.seed, r.config.workers, r.took.Round(time.Second), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	line := func(n int, text string) { fmt.Fprintf(w, "%9d  %s\n", n, text) }
	line(int(f.started.Load()), "processes started")
	line(int(f.killed.Load()), "processes killed")
	line(int(f.frozen.Load()), "processes frozen past their leases")
	line(int(f.thawed.Load()), "of these that went on; the others were killed in their sleep")
	fmt.Fprintln(w)
	line(int(f.lost.Load()), "replies lost")
	line(int(f.delayed.Load()), "replies delayed")
	line(int(f.dropped.Load()), "requests lost")
	line(int(f.late.Load()), "requests that arrived when their process was dead or frozen")
	line(int(f.refused.Load()), "requests refused")
	fmt.Fprintln(w)
	line(of(idempotency.EventClaimed), "claims of free keys")
	line(of(idempotency.EventTakenOver), "claims taken over")
	line(of(idempotency.EventInProgress), "claims refused: in progress elsewhere")
	line(of(idempotency.EventReplayed), "claims refused: done already")
	line(of(idempotency.EventLost), "late finishers refused")
	line(of(idempotency.EventReleased), "claims released by handlers that failed")
	fmt.Fprintln(w)
	line(r.keys[1], "keys with a transaction")
	line(r.verdict.effects[1], "effects of these")
	line(r.keys[0], "keys without a transaction")
	line(r.verdict.effects[0], "effects of these")
	for _, reason := range slices.SortedFunc(maps.Keys(r.repeats), func(a, b string) int {
		return cmp.Or(r.repeats[b]-r.repeats[a], cmp.Compare(a, b))
	}) {
		line(r.repeats[reason], "of these repeated: "+reason)
	}
	line(r.verdict.lost, "keys lost: never told as done, or without an effect")
	line(r.unrecorded, "keys told as done whose completion was not stored, and which nobody sent again")
	line(len(r.wrong), "promises broken")
	for i, wrong := range r.wrong {
		if i == maxWrong {
			fmt.Fprintf(w, "           and more\n")
			break
		}
		fmt.Fprintf(w, "           %s\n", wrong)
	}
	for _, missed := range r.missed {
		fmt.Fprintf(w, "not enough: %s\n", missed)
	}
}
