// Package redistest gives tests Redis servers to talk to: real ones, one in memory, and a proxy that loses what passes.
//
// A real server is the program redis-server or valkey-server, whichever is found first, or the one that the environment
// variable ONCEKIT_REDIS_SERVER names. `make tools` installs the first on Debian. Without one, tests are skipped, or fail
// where the environment variable CI is set.
package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// startTimeout bounds how long a server may take to listen. It takes some hundredths of a second.
const startTimeout = 20 * time.Second

// Start starts a server on a free loopback port, and returns its address. It keeps its data in memory, evicts nothing, and
// ends with the test. Further arguments are those of redis-server, such as "--maxmemory", "10mb".
func Start(t testing.TB, args ...string) (address string) {
	t.Helper()
	program, err := find()
	if err != nil {
		if os.Getenv("CI") != "" { // nothing may be skipped there: a skip would look like a success
			t.Fatal(err)
		}
		t.Skip(err)
	}
	// The port is free when it is chosen and may be taken when the server binds it, by another package's tests.
	for range 5 {
		var stop func()
		if address, stop, err = start(program, t.TempDir(), args); err == nil {
			t.Cleanup(stop)
			return address
		}
	}
	t.Fatal(err)
	return ""
}

// StartCluster starts a cluster of one server with all slots, and returns its address.
func StartCluster(t testing.TB) (address string) {
	t.Helper()
	bus, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	address = Start(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus))
	client := GoRedis(t, address)
	if err := client.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(10 * time.Millisecond) {
		info, err := client.ClusterInfo(t.Context()).Result()
		if err == nil && strings.Contains(info, "cluster_state:ok") {
			return address
		}
		if time.Now().After(deadline) {
			t.Fatalf("redistest: the cluster is not up within %v: %s, %v", startTimeout, info, err)
		}
	}
}

// InMemory starts a server in memory that ends with the test, and returns its address. It never deletes what has expired.
func InMemory(t testing.TB) (address string) {
	t.Helper()
	return miniredis.RunT(t).Addr()
}

func find() (string, error) {
	if program := os.Getenv("ONCEKIT_REDIS_SERVER"); program != "" {
		return program, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("redistest: neither redis-server nor valkey-server is installed: run `make tools` as root on " +
		"Debian, or set ONCEKIT_REDIS_SERVER")
}

// start starts a server that works in a folder of its own. stop ends it and waits for that.
func start(program, folder string, args []string) (address string, stop func(), err error) {
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	command := exec.Command(program, append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no",
	}, args...)...)
	endWithParent(command)
	output, err := command.StdoutPipe()
	if err != nil {
		return "", nil, fmt.Errorf("redistest: %w", err)
	}
	started, ready, exited := make(chan error, 1), make(chan struct{}), make(chan struct{})
	var said string // complete once exited is closed
	go func() {
		// The kernel ends the server when the thread that started it ends (see endWithParent), so that thread must live as
		// long as the server does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := command.Start()
		started <- err
		if err != nil {
			return
		}
		said = drain(output, ready)
		_ = command.Wait()
	}()
	if err := <-started; err != nil {
		return "", nil, fmt.Errorf("redistest: start %s: %w", program, err)
	}
	stop = func() {
		_ = command.Process.Kill() // it fails only where the process has ended
		<-exited
	}
	select {
	case <-ready:
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), stop, nil
	case <-exited:
		return "", nil, fmt.Errorf("redistest: %s for port %d ended at once: %s", program, port, said)
	case <-time.After(startTimeout):
		stop()
		return "", nil, fmt.Errorf("redistest: %s did not listen on port %d within %v: %s", program, port, startTimeout, said)
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("redistest: find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// drain reads r to its end, closes ready when the server says that it is, and returns the first lines.
func drain(r io.Reader, ready chan<- struct{}) string {
	var kept []string
	for lines := bufio.NewReader(r); ; {
		line, _, err := lines.ReadLine()
		if err != nil {
			return strings.Join(kept, "\n")
		}
		if ready != nil && strings.Contains(string(line), "Ready to accept connections") {
			close(ready)
			ready = nil
		}
		if len(kept) < 20 {
			kept = append(kept, string(line))
		}
	}
}
