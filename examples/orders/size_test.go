//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/internal/rietest"
)

// deployedSize builds a main package as it is deployed, and returns how many bytes that has.
func deployedSize(t *testing.T, pkg string) int64 {
	t.Helper()
	output := filepath.Join(t.TempDir(), "bootstrap")
	command := exec.Command("go", "build", "-buildvcs=false", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w",
		"-o", output, pkg)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	info, err := os.Stat(output)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestBinarySize compares the function with one of the same work that is written with the SDK alone: a larger binary
// takes longer to start. A third of a megabyte is for the calls for many, which the one by hand does not make: the SDK's
// code for three more operations, and ours for statements.
func TestBinarySize(t *testing.T) {
	const limit = 1_500_000
	function, byHand := deployedSize(t, "./lambda"), deployedSize(t, "./internal/byhand")
	t.Logf("linux/arm64, stripped, lambda.norpc: %d bytes, by hand %d, %d more",
		function, byHand, function-byHand)
	if function-byHand > limit {
		t.Errorf("the function is %d bytes larger than the one by hand, want at most %d", function-byHand, limit)
	}
}

// TestInitTime adds up what the runtime says that the initialization of the packages takes before main.
func TestInitTime(t *testing.T) {
	const limit = 100 * time.Microsecond
	binary := rietest.Build(t, "./lambda")
	var best map[string]time.Duration
	for range 10 { // the least is closest to what it takes when nothing disturbs it
		if took := initTimes(t, binary); best == nil || took[ours] < best[ours] {
			best = took
		}
	}
	t.Logf("package initialization on %s/%s: oncekit %v; go-json-experiment %v; AWS %v; all %v",
		runtime.GOOS, runtime.GOARCH, best[ours], best[jsonPackages], best[awsPackages], best[""])
	if best[""] == 0 {
		t.Fatal("the runtime reported no initialization at all")
	}
	if best[ours] > limit {
		t.Errorf("initialization of our packages takes %v, want at most %v", best[ours], limit)
	}
}

// The beginnings of package paths. All begin with "".
const (
	ours         = "github.com/oncekit/oncekit/"
	jsonPackages = "github.com/go-json-experiment/"
	awsPackages  = "github.com/aws/"
)

// initTimes runs the binary, which ends at once since it is told of no table, and returns how long the packages took
// whose paths begin so.
func initTimes(t *testing.T, binary string) map[string]time.Duration {
	t.Helper()
	command := exec.Command(binary)
	command.Env = []string{"GODEBUG=inittrace=1", "AWS_REGION=us-east-1"}
	out, err := command.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("dynamostore:")) {
		t.Fatalf("%s: %v, want it to miss its table\n%s", binary, err, out)
	}
	took := make(map[string]time.Duration)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		// init internal/bytealg @0.008 ms, 0 ms clock, 0 bytes, 0 allocs
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[0] != "init" {
			continue
		}
		ms, err := strconv.ParseFloat(fields[4], 64)
		if err != nil {
			t.Fatal(fmt.Errorf("line %q: %w", lines.Text(), err))
		}
		for _, prefix := range []string{"", ours, jsonPackages, awsPackages} {
			if strings.HasPrefix(fields[1], prefix) {
				took[prefix] += time.Duration(ms * float64(time.Millisecond))
			}
		}
	}
	return took
}
