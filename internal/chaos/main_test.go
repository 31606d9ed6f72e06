//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dynamotest.StopAfter(m)) }

// TestShortRun kills and freezes workers until all has happened so often. If the machine needs longer than the time for
// that, the test fails.
func TestShortRun(t *testing.T) {
	c := config{
		program: filepath.Join(t.TempDir(), "chaos"), folder: t.TempDir(), seed: uint64(time.Now().UnixNano()),
		workers: 24, time: 45 * time.Second,
		least: least{killed: 200, frozen: 100, takenOver: 100, refused: 20}, keys: 2000,
	}
	// Workers run without the race detector, with which they take ten times as long to start.
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", c.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	found, err := start(t.Context(), t, c, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatalf("seed %d: %v", c.seed, err)
	}
	var figures bytes.Buffer
	found.print(&figures)
	t.Logf("%s", &figures)
	if len(found.wrong) > 0 {
		t.Errorf("%d promises are broken", len(found.wrong))
	}
	if len(found.missed) > 0 {
		t.Errorf("not enough has happened: %q", found.missed)
	}
	if keys := found.keys[0] + found.keys[1]; keys < c.keys {
		t.Errorf("%d keys, want at least %d", keys, c.keys)
	}
}

// TestBrokenWorkers has programs in place of workers that do what no worker does. The run ends with an error.
func TestBrokenWorkers(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"end":              {"exit 3", "has ended by itself: exit status 3"},
		"answer nothing":   {"while read line; do echo '{}{}'; done", "want a batch response"},
		"fail":             {`while read line; do echo '{"errorMessage":"no"}'; done`, "want a batch response"},
		"write no journal": {"echo no >&3; while read line; do echo '{}'; done", `journal has the line "no\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := config{folder: t.TempDir(), seed: 1, workers: 2, time: 10 * time.Second}
			c.program = filepath.Join(c.folder, "worker")
			if err := os.WriteFile(c.program, []byte("#!/bin/sh\n"+test.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			found, err := start(t.Context(), t, c, func(string) {})
			if found != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
		})
	}
}

func TestMissed(t *testing.T) {
	var f faults
	f.killed.Store(2)
	f.frozen.Store(2)
	h := newHistory()
	h.counts[name(idempotency.EventTakenOver)] = 2
	h.counts[name(idempotency.EventLost)] = 2
	if missed := (least{2, 2, 2, 2}).missed(&f, h); len(missed) > 0 {
		t.Errorf("missed are %q, want none", missed)
	}
	want := []string{
		"killed: 2, want at least 3", "frozen: 2, want at least 4", "taken over: 2, want at least 5",
		"late finishers refused: 2, want at least 6",
	}
	if diff := cmp.Diff(want, (least{3, 4, 5, 6}).missed(&f, h)); diff != "" {
		t.Errorf("missed (-want +got):\n%s", diff)
	}
}
