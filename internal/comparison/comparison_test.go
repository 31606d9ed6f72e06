package main

import (
	"strings"
	"testing"
	"time"
)

// small is what the program measures, but too little of it for figures of time to mean anything.
var small = config{
	sizes:        []int{10, 100},
	latencies:    []time.Duration{time.Millisecond},
	rounds:       1,
	records:      100,
	concurrency:  16,
	scenarioSize: 100,
	cutOff:       500 * time.Millisecond,
	memory:       memoryConfig{size: 100, few: 2, many: 4, max: "128MiB"},
}

// TestRun runs the whole program, with all of its clients. It checks the figures that do not depend on time, so that the
// requests of a client cannot change unseen.
func TestRun(t *testing.T) {
	var report strings.Builder
	m, _, err := run(t, t.Context(), small, &report, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range append([]string{
		"1ms added to each request:", "| 10, first run |", "| 100, replay |", "| cut off by the deadline |", "GOMEMLIMIT=128MiB",
		"| units, first run, of single |", "The proxy took ",
	}, clientNames...) {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, report.String())
		}
	}

	type counts struct{ writeUnits, readUnits float64 }
	for client, want := range map[string]struct {
		units    [2]counts  // of a first run and a replay, for a record
		requests [2]float64 // at most
	}{
		handWritten: {units: [2]counts{{2, 0}, {1, 0}}, requests: [2]float64{2, 1}},
		single:      {units: [2]counts{{2, 0}, {1, 0}}, requests: [2]float64{2, 1}},
		powertools:  {units: [2]counts{{2, 0}, {1, 0}}, requests: [2]float64{2, 1}},
		bulk:        {units: [2]counts{{2, 0}, {1, 1}}, requests: [2]float64{0.3, 0.2}},
		bulkAsks:    {units: [2]counts{{2, 1}, {0, 1}}, requests: [2]float64{0.4, 0.1}},
	} {
		for i, want := range want.units {
			f := m.figures[setting{latency: time.Millisecond, replay: i == 1, size: 100, client: client}]
			// A record that is alone in its group is claimed by a single call, whose refusal needs no read.
			few := client == bulk && i == 1 && f.readUnits > want.readUnits/2 && f.readUnits < want.readUnits
			if got := (counts{f.writeUnits, f.readUnits}); got.writeUnits != want.writeUnits || got != want && !few {
				t.Errorf("%s, %s: write units and read units are %v, want %v", client, runName(i == 1), got, want)
			}
			if f.recordsPerSecond <= 0 || f.cpu <= 0 || f.resident <= 0 || f.allocations <= 0 && client != powertools {
				t.Errorf("%s, %s: figures are %+v, want all that are measured", client, runName(i == 1), f)
			}
		}
		for i, most := range want.requests {
			f := m.figures[setting{latency: time.Millisecond, replay: i == 1, size: 100, client: client}]
			if f.requests == 0 || f.requests > most {
				t.Errorf("%s, %s: %v requests a record, want some, and %v at most", client, runName(i == 1), f.requests, most)
			}
		}
	}
}

// A client that does less than it should must not look fast.
func TestMeasureRefuses(t *testing.T) {
	c, err := begin(t, t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	client, _, err := c.start(handWritten)
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.newDelivery(1, 10)
	if err != nil {
		t.Fatal(err)
	}
	j := job{Events: d.file, Time: time.Minute, Ending: succeeds}
	if _, _, err := c.measure(client, j, 10, 0); err != nil {
		t.Error(err)
	}
	_, _, err = c.measure(client, j, 10, 0) // a replay
	if want := "hand-written handled 0 messages and failed 0, want 10 and 0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want %q", err, want)
	}
	j.Events = "nowhere"
	if _, _, err := c.measure(client, j, 10, 0); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error is %v, want one that names the file", err)
	}
	if err := client.close(); err != nil {
		t.Error(err)
	}
}

func TestClientThatIsUnknown(t *testing.T) {
	c, err := startClient(t.Context(), "", childSpec{Client: "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.do(job{}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("error is %v, want one that names the client", err)
	}
	if err := c.close(); err == nil {
		t.Error("the process has succeeded, want a failure")
	}
}
