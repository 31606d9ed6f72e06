//go:build unix

// Package rietest runs a Lambda function's binary in tests under the Lambda Runtime Interface Emulator, which starts
// the function as Lambda does, hands it events and kills its process at the timeout.
//
// `make tools` installs the emulator; see https://github.com/aws/aws-lambda-runtime-interface-emulator.
package rietest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncekit/oncekit/internal/localserver"
)

// Options says how the emulator runs a function.
type Options struct {
	// Timeout is the function's timeout, in whole seconds because the emulator knows no others. Zero means 3 s, which
	// is Lambda's own default.
	Timeout time.Duration

	// Env is added to the function's environment, each entry as "NAME=value". The function sees nothing of the test's
	// environment except PATH and HOME, so no one's AWS credentials get into a test.
	Env []string
}

// Function is a Lambda function that runs under the emulator, in one execution environment.
type Function struct {
	url  string
	turn chan struct{} // holds one element while an event is with the function
	cmd  *exec.Cmd
	logs *logBuffer
	done chan struct{} // closed when the emulator has ended
}

// Build compiles the main package pkg as a Lambda function for this machine, with the build tag lambda.norpc, and
// returns the binary's path. The test fails if it does not compile.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	// No version control stamp: it makes the build depend on whether git trusts the folder.
	build := exec.Command("go", "build", "-buildvcs=false", "-tags", "lambda.norpc", "-o", bootstrap, pkg)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("rietest: build %s: %v\n%s", pkg, err, out)
	}
	return bootstrap
}

// Start runs the function in the file bootstrap until the test ends, and prints its logs if the test fails. Without
// the emulator the test is skipped, or fails where the environment variable CI is set.
//
// The function's process starts with the first event.
func Start(t testing.TB, bootstrap string, options ...func(*Options)) *Function {
	t.Helper()
	o := Options{Timeout: 3 * time.Second}
	for _, option := range options {
		option(&o)
	}
	if o.Timeout < time.Second || o.Timeout%time.Second != 0 {
		t.Fatalf("rietest: Timeout is %v; the emulator takes whole seconds, at least one", o.Timeout)
	}
	emulator := localserver.Tool(t, "bin/aws-lambda-rie")

	// A free port can be taken by someone else before the emulator listens on it. The emulator ends then.
	const attempts = 3
	for attempt := 1; ; attempt++ {
		f, err := start(emulator, bootstrap, o)
		if err == nil {
			t.Cleanup(func() {
				if err := f.stop(); err != nil {
					t.Error(err)
				}
				if t.Failed() {
					t.Logf("rietest: the emulator's and the function's output:\n%s", f.Logs())
				}
			})
			return f
		}
		if attempt == attempts {
			t.Fatal(err)
		}
	}
}

// Logs returns what the emulator and the function have printed so far.
func (f *Function) Logs() string { return f.logs.String() }

func start(emulator, bootstrap string, o Options) (*Function, error) {
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	address, runtimeAPI := addresses[0], addresses[1]

	f := &Function{
		url:  "http://" + address + "/2015-03-31/functions/function/invocations",
		turn: make(chan struct{}, 1),
		logs: new(logBuffer),
		done: make(chan struct{}),
	}
	f.cmd = exec.Command(emulator,
		"--runtime-interface-emulator-address", address,
		"--runtime-api-address", runtimeAPI,
		bootstrap)
	f.cmd.Dir = filepath.Dir(bootstrap)
	f.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + os.Getenv("HOME"),
		"AWS_LAMBDA_FUNCTION_TIMEOUT=" + strconv.Itoa(int(o.Timeout/time.Second)),
	}, o.Env...)
	f.cmd.Stdout, f.cmd.Stderr = f.logs, f.logs
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // for stop
	f.cmd.WaitDelay = time.Second                          // a function that outlives the emulator holds its output open
	if err := f.cmd.Start(); err != nil {
		return nil, fmt.Errorf("rietest: start the emulator: %w", err)
	}
	go func() {
		defer close(f.done)
		_ = f.cmd.Wait() // how it ended is in its logs
	}()
	if err := f.awaitReady(address); err != nil {
		_ = f.stop()
		return nil, fmt.Errorf("%w\n%s", err, f.Logs())
	}
	return f, nil
}

// awaitReady returns when the emulator takes connections.
func (f *Function) awaitReady(address string) error {
	deadline := time.After(10 * time.Second)
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			return conn.Close()
		}
		select {
		case <-f.done:
			return fmt.Errorf("rietest: the emulator ended before it listened on %s", address)
		case <-deadline:
			return fmt.Errorf("rietest: the emulator did not listen on %s within 10 s", address)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stop ends the emulator and the function.
//
// The emulator puts the function into a process group of its own, so a signal to the emulator's group does not reach
// it. It kills the function when it is asked to end, but not when it crashes. The session is what both have in common
// in any case, and what is left of it is killed here.
func (f *Function) stop() error {
	pid := f.cmd.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGTERM) // fails only if it has ended
	var err error
	select {
	case <-f.done:
	case <-time.After(5 * time.Second):
		err = fmt.Errorf("rietest: the emulator (process %d) did not end within 5 s of SIGTERM and was killed", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, member := range session(pid) {
		_ = syscall.Kill(member, syscall.SIGKILL)
	}
	<-f.done
	return err
}

// session returns the processes of the session id, on Linux; elsewhere it finds none.
func session(id int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var members []int
	for _, file := range files {
		stat, _ := os.ReadFile(file) // gone meanwhile: no member
		// The name in parentheses may itself have spaces and parentheses. After it come state, parent, group, session.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 4 || fields[3] != strconv.Itoa(id) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			members = append(members, pid)
		}
	}
	return members
}

// freeAddresses returns n loopback addresses that nobody listened on a moment ago.
func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("rietest: find a free port: %w", err)
		}
		defer l.Close() // after the loop, so that no address comes twice
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// logBuffer collects output and can be read while it grows.
type logBuffer struct {
	mu  sync.Mutex
	all []byte
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, p...)
	return len(p), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.all)
}

// post sends the event to the emulator and returns the status and the body of its answer. The emulator crashes when it
// is given an event while another one is with the function, so one waits for the other here.
func (f *Function) post(ctx context.Context, event []byte) (int, []byte, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return 0, nil, context.Cause(ctx)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(event))
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
