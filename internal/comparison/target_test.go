package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTargets has figures that meet all targets, but for one at a time.
func TestTargets(t *testing.T) {
	const latency = 4 * time.Millisecond
	type change func(results map[setting]figures, rest map[string]map[string]scenarioResult, m *memoryResult)
	figure := func(client string, size int, replay bool, f figures) change {
		return func(results map[setting]figures, _ map[string]map[string]scenarioResult, _ *memoryResult) {
			results[setting{latency: latency, replay: replay, size: size, client: client}] = f
		}
	}
	for _, test := range []struct {
		name   string
		change change
		want   []string // what is missed
	}{
		{name: "all met"},
		{
			name: "CPU and allocations", change: figure(bulk, targetSize, false, figures{cpu: 18, allocations: 11, requests: 0.08}),
			want: []string{"CPU, first run, of hand-written, 4ms more latency", "allocations, first run, of hand-written, 4ms more latency"},
		},
		{
			name: "requests", change: figure(bulk, targetSize, false, figures{cpu: 17, allocations: 10, requests: 0.091}),
			want: []string{"requests a record, first run, 4ms more latency"},
		},
		{
			name: "replay", change: figure(bulkAsks, targetSize, true, figures{cpu: 9, allocations: 10, requests: 0.013}),
			want: []string{
				"CPU, replay, asking first, of hand-written, 4ms more latency",
				"allocations, replay, asking first, of hand-written, 4ms more latency",
				"requests a record, replay, asking first, 4ms more latency",
			},
		},
		{
			name: "slower where small", change: figure(bulk, smallSize, false, figures{recordsPerSecond: 94}),
			want: []string{"records/s of single, batches of 10, first run, 4ms more latency"},
		},
		{
			name: "slower replay where small", change: figure(bulkAsks, smallSize, true, figures{recordsPerSecond: 94}),
			want: []string{"records/s of single, batches of 10, replay, asking first, 4ms more latency"},
		},
		{
			name: "units", change: func(_ map[setting]figures, rest map[string]map[string]scenarioResult, _ *memoryResult) {
				rest["first run"][bulk] = scenarioResult{load: load{WriteUnits: 201}}
				rest["duplicates"][bulkAsks] = scenarioResult{load: load{WriteUnits: 100}}
			},
			want: []string{"units, first run, of single", "units, known replay, of single"},
		},
		{
			name: "memory", change: func(_ map[setting]figures, _ map[string]map[string]scenarioResult, m *memoryResult) {
				m.many.resident = 120
			},
			want: []string{"peak memory after 25 invocations, of that after 5"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			results := map[setting]figures{}
			rest := map[string]map[string]scenarioResult{
				"first run":  {single: {load: load{WriteUnits: 200}}, bulk: {load: load{WriteUnits: 200}}},
				"duplicates": {single: {load: load{WriteUnits: 100}}, bulkAsks: {load: load{ReadUnits: 100}}},
			}
			m := memoryResult{few: memoryUse{invocations: 5, resident: 100}, many: memoryUse{invocations: 25, resident: 105}}
			for _, set := range []change{
				figure(handWritten, targetSize, false, figures{cpu: 100, allocations: 100}),
				figure(handWritten, targetSize, true, figures{cpu: 100, allocations: 100}),
				figure(bulk, targetSize, false, figures{cpu: 17, allocations: 10, requests: 0.09}),
				figure(bulkAsks, targetSize, true, figures{cpu: 8, allocations: 9, requests: 0.012}),
				figure(single, smallSize, false, figures{recordsPerSecond: 100}),
				figure(single, smallSize, true, figures{recordsPerSecond: 100}),
				figure(bulk, smallSize, false, figures{recordsPerSecond: 95}),
				figure(bulkAsks, smallSize, true, figures{recordsPerSecond: 95}),
				test.change,
			} {
				if set != nil {
					set(results, rest, &m)
				}
			}
			var missed []string
			var out strings.Builder
			p := &printer{w: &out}
			all := targets(config{latencies: []time.Duration{latency}}, measurements{figures: results, scenarios: rest, memory: m})
			for _, target := range all {
				if !target.met() {
					missed = append(missed, target.name)
				}
			}
			if diff := cmp.Diff(test.want, missed); diff != "" {
				t.Errorf("missed (-want +got):\n%s", diff)
			}
			if len(all) != 11 {
				t.Errorf("%d targets, want 11", len(all))
			}
			if got := p.printTargets(all); got != len(test.want) || strings.Count(out.String(), "**NO**") != len(test.want) {
				t.Errorf("printTargets returns %d, want %d:\n%s", got, len(test.want), out.String())
			}
		})
	}
}
