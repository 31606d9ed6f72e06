// Package dynamotest gives tests a DynamoDB-compatible server to talk to over the wire, clients and fresh tables on
// it, and a proxy that puts faults between a client and the server.
//
// The server is the one that `make tools` installs, started on a free loopback port once a test process. The
// environment variable ONCEKIT_DYNAMODB_ENDPOINT names another endpoint to use instead; then none is started. With
// neither, tests are skipped, or fail where the environment variable CI is set.
package dynamotest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// EndpointVariable is the environment variable that names the endpoint to use instead of a server of our own.
const EndpointVariable = "ONCEKIT_DYNAMODB_ENDPOINT"

// startTimeout bounds how long a server may take to answer its first request. It takes some milliseconds.
const startTimeout = 20 * time.Second

// own is this process's server.
var own struct {
	sync.Mutex
	armed   bool // StopAfter was called, so that something stops the server
	stopped bool
	server  *server
}

// TestingM is the part of *testing.M that is used.
type TestingM interface{ Run() int }

// StopAfter returns an m that stops this process's server after the tests ran. Every package that calls Start has it in
// its TestMain: nothing else knows when the last test has ended.
func StopAfter(m TestingM) TestingM {
	own.Lock()
	defer own.Unlock()
	own.armed = true
	return stopAfter{m}
}

type stopAfter struct{ m TestingM }

func (s stopAfter) Run() int {
	defer func() {
		own.Lock()
		defer own.Unlock()
		own.stopped = true
		if own.server != nil {
			own.server.stop()
		}
	}()
	return s.m.Run()
}

// Start returns the URL of the endpoint, and starts the server if no test of this process has done so yet. Where there
// is none, it ends the test as the package's comment says.
func Start(t testing.TB) string {
	t.Helper()
	if url := os.Getenv(EndpointVariable); url != "" {
		return url
	}
	directory, err := os.Getwd()
	if err != nil {
		t.Fatalf("dynamotest: %v", err)
	}
	binary, err := find(directory)
	if err != nil {
		missing(t, err)
	}
	own.Lock()
	defer own.Unlock()
	switch {
	case !own.armed:
		t.Fatal("dynamotest: TestMain does not call dynamotest.StopAfter, so nothing would stop the server")
	case own.stopped:
		t.Fatal("dynamotest: the server is stopped already")
	case own.server == nil:
		if own.server, err = start(binary); err != nil {
			t.Fatalf("dynamotest: %v", err)
		}
	}
	return own.server.url
}

// missing ends a test that has no server. In CI nothing may be skipped: a skip there would look like a success.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("dynamotest: %v", err)
	}
	t.Skipf("dynamotest: %v", err)
}

// find returns the installed binary of the module that directory is in.
func find(directory string) (string, error) {
	for root := directory; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			binary := filepath.Join(root, ".tools", "bin", "dynoxide")
			if _, err := os.Stat(binary); err != nil {
				return "", fmt.Errorf("no DynamoDB-compatible server: run `make tools`, or set %s (%w)", EndpointVariable, err)
			}
			return binary, nil
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("no go.mod in %s or above it, so no installed server; set %s", directory, EndpointVariable)
		}
	}
}

// server is a running server process.
type server struct {
	url     string
	process *os.Process
	exited  chan struct{} // closed when the process has ended and was waited for
	output  string        // what it wrote, complete once exited is closed
}

// start starts binary on a free port. The port is free when it is chosen and may be taken when the server binds it, by
// another package's tests for example, so start tries again with another one.
func start(binary string) (*server, error) {
	var failed error
	for range 5 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s, err := startOn(binary, port)
		if err == nil {
			return s, nil
		}
		failed = err
	}
	return nil, failed
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func startOn(binary string, port int) (*server, error) {
	command := exec.Command(binary, "--port", strconv.Itoa(port))
	endWithParent(command)
	s := &server{url: fmt.Sprintf("http://127.0.0.1:%d", port), exited: make(chan struct{})}
	bound := make(chan struct{})
	started := make(chan error, 1)
	go func() {
		// The kernel ends the server when the thread that started it ends (see endWithParent), so that thread must
		// live as long as the server does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.exited)
		output, err := command.StdoutPipe()
		if err == nil {
			command.Stderr = command.Stdout
			err = command.Start()
		}
		started <- err
		if err != nil {
			return
		}
		s.output = drain(output, s.url, bound)
		_ = command.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	s.process = command.Process

	// It says that it listens only once it has bound the port. Asking the port alone could meet another process's server.
	deadline := time.After(startTimeout)
	select {
	case <-bound:
	case <-s.exited:
		return nil, fmt.Errorf("%s --port %d ended at once: %s", binary, port, s.output)
	case <-deadline:
		s.stop()
		return nil, fmt.Errorf("%s --port %d did not listen within %v: %s", binary, port, startTimeout, s.output)
	}
	for {
		response, err := http.Get(s.url)
		if err == nil {
			http.DefaultClient.CloseIdleConnections()
			return s, response.Body.Close()
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			s.stop()
			return nil, fmt.Errorf("%s does not answer within %v: %w", s.url, startTimeout, err)
		}
	}
}

// drain reads r to its end, closes bound when the line that names url has come, and returns the first lines.
func drain(r io.Reader, url string, bound chan<- struct{}) string {
	var kept []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if bound != nil && strings.Contains(lines.Text(), "listening on "+url) {
			close(bound)
			bound = nil
		}
		if len(kept) < 20 {
			kept = append(kept, lines.Text())
		}
	}
	return strings.Join(kept, "\n")
}

// stop ends the process and waits for it.
func (s *server) stop() {
	if err := s.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintf(os.Stderr, "dynamotest: stop process %d: %v\n", s.process.Pid, err)
		return
	}
	<-s.exited
}
