package dynamotest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// parentVariable makes this test binary start a server, print its process id, and wait to be killed.
const parentVariable = "DYNAMOTEST_PARENT"

func TestMain(m *testing.M) {
	if binary := os.Getenv(parentVariable); binary != "" {
		s, err := start(binary)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(s.process.Pid)
		select {}
	}
	goleak.VerifyTestMain(StopAfter(m))
}

// installed returns the binary that make tools installs.
func installed(t *testing.T) string {
	t.Helper()
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := find(directory)
	if err != nil {
		missing(t, err)
	}
	return binary
}

// isAlive reports whether there is such a process. One that has ended and was not waited for is there as well.
func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestServerStops(t *testing.T) {
	s, err := start(installed(t))
	if err != nil {
		t.Fatal(err)
	}
	pid := s.process.Pid
	if !isAlive(pid) {
		t.Fatalf("process %d is not alive", pid)
	}
	s.stop()
	if isAlive(pid) {
		t.Errorf("process %d is alive after stop, or was not waited for", pid)
	}
	if _, err := http.Get(s.url); err == nil {
		t.Errorf("%s answers after stop", s.url)
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	if _, err := start("/bin/false"); err == nil || !strings.Contains(err.Error(), "ended at once") {
		t.Errorf("error is %v; want one that says it ended at once", err)
	}
	if _, err := start(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v; want one that says there is no such file", err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	inside := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := find(inside); err == nil || !strings.Contains(err.Error(), "no go.mod") {
		t.Errorf("outside of a module: error is %v", err)
	}
	write := func(name string) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("go.mod")
	if _, err := find(inside); err == nil || !strings.Contains(err.Error(), "run `make tools`, or set ONCEKIT_DYNAMODB_ENDPOINT") {
		t.Errorf("without a binary: error is %v; want it to say what to run", err)
	}
	want := write(".tools/bin/dynoxide")
	if got, err := find(inside); got != want || err != nil {
		t.Errorf("find = %q, %v; want %q", got, err, want)
	}
}

// recorder is a test that keeps how it ended. It goes on, so that only what came first counts.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper() {}
func (r *recorder) Skipf(f string, args ...any) {
	r.end = cmp.Or(r.end, "skip: "+fmt.Sprintf(f, args...))
}
func (r *recorder) Fatalf(f string, args ...any) {
	r.end = cmp.Or(r.end, "fatal: "+fmt.Sprintf(f, args...))
}

func TestMissing(t *testing.T) {
	for ci, want := range map[string]string{"": "skip: dynamotest: run it", "true": "fatal: dynamotest: run it"} {
		t.Setenv("CI", ci)
		r := &recorder{}
		missing(r, errors.New("run it"))
		if r.end != want {
			t.Errorf("with CI=%q the test ended with %q; want %q", ci, r.end, want)
		}
	}
}

func TestEndpointVariable(t *testing.T) {
	t.Setenv(EndpointVariable, "http://localhost:1")
	if got := Start(t); got != "http://localhost:1" {
		t.Errorf("Start = %q; want the endpoint of the environment", got)
	}
}
