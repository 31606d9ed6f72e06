package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// printer writes text and Markdown tables, and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) row(cells ...string) { p.printf("| %s |\n", strings.Join(cells, " | ")) }

// header writes the head of a table. The first columns are text, the others are numbers.
func (p *printer) header(texts int, names ...string) {
	p.printf("\n")
	p.row(names...)
	rules := make([]string, len(names))
	for i := range rules {
		rules[i] = "---:"
		if i < texts {
			rules[i] = "---"
		}
	}
	p.row(rules...)
}

func runName(replay bool) string {
	if replay {
		return "replay"
	}
	return "first run"
}

// printFigures writes a table for each latency.
func (p *printer) printFigures(c config, results map[setting]figures) {
	for _, latency := range c.latencies {
		p.printf("\n%s\n", latencyTitle(latency))
		p.header(2, "batch", "client", "records/s", "CPU µs", "of hand-written", "allocations", "requests", "write units",
			"read units", "peak MiB")
		for _, replay := range []bool{false, true} {
			for _, size := range c.sizes {
				hand := results[setting{latency: latency, replay: replay, size: size, client: handWritten}]
				for _, name := range clientNames {
					f := results[setting{latency: latency, replay: replay, size: size, client: name}]
					allocations := fmt.Sprintf("%.1f", f.allocations)
					if name == powertools {
						allocations = "-" // V8 does not tell
					}
					p.row(fmt.Sprintf("%d, %s", size, runName(replay)), name, fmt.Sprintf("%.0f", f.recordsPerSecond),
						fmt.Sprintf("%.1f", f.cpu), fmt.Sprintf("%.3f", ratio(f.cpu, hand.cpu)), allocations,
						fmt.Sprintf("%.3f", f.requests), fmt.Sprintf("%.2f", f.writeUnits), fmt.Sprintf("%.2f", f.readUnits),
						fmt.Sprintf("%.0f", f.resident))
				}
			}
		}
	}
}

func latencyTitle(latency time.Duration) string {
	if latency == 0 {
		return "No latency added:"
	}
	return fmt.Sprintf("%v added to each request:", latency)
}

// printScenarios writes what batches of records cost that something happens to.
func (p *printer) printScenarios(c config, results map[string]map[string]scenarioResult) {
	p.printf("\nOne batch of %d, of which all have the same fate:\n", c.scenarioSize)
	p.header(2, "batch", "client", "handled", "requests", "write units", "read units", "price in write units")
	for _, s := range scenarios {
		for _, name := range scenarioClients {
			r := results[s.name][name]
			p.row(s.name, name, fmt.Sprint(r.handled), fmt.Sprint(r.Requests), fmt.Sprint(r.WriteUnits),
				fmt.Sprint(r.ReadUnits), fmt.Sprintf("%.0f", r.price()))
		}
	}
}

// printMemory writes what measureMemory found.
func (p *printer) printMemory(c config, r memoryResult) {
	p.printf("\n%s, events of %d records and %.1f MB, GOMEMLIMIT=%s, every other invocation a replay:\n",
		bulk, c.memory.size, float64(r.eventBytes)/1e6, c.memory.max)
	p.header(0, "invocations", "peak heap MiB", "peak of what GOMEMLIMIT limits MiB", "peak resident MiB (VmHWM)")
	for _, use := range []memoryUse{r.few, r.many} {
		mib := func(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }
		p.row(fmt.Sprint(use.invocations), mib(use.heap), mib(use.limited), mib(use.resident))
	}
}

// printTargets writes the targets, and returns how many are missed.
func (p *printer) printTargets(targets []target) (missed int) {
	p.printf("\nTargets:\n")
	p.header(1, "target", "measured", "limit", "met")
	for _, t := range targets {
		met, limit := "yes", "at most"
		if t.least {
			limit = "at least"
		}
		if !t.met() {
			met = "**NO**"
			missed++
		}
		p.row(t.name, fmt.Sprintf("%.3f", t.got), fmt.Sprintf("%s %g", limit, t.limit), met)
	}
	return missed
}
