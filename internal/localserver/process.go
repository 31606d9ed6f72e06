package localserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// startTimeout bounds how long a server may take to answer its first request. It takes less than a second.
const startTimeout = 20 * time.Second

// process is a running server.
type process struct {
	url    string
	handle *os.Process
	exited chan struct{} // closed when the process has ended and was waited for
	output string        // what it wrote, complete once exited is closed
}

// start starts a server on a free port. The port is free when it is chosen and may be taken when the server binds it,
// by another package's tests for example, so start tries again with another one.
func start(command func(port int) *exec.Cmd) (*process, error) {
	var failed error
	for range 5 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		p, err := startOn(command(port), port, startTimeout)
		if err == nil {
			return p, nil
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

// startOn starts a server on the port, and gives up after timeout.
func startOn(command *exec.Cmd, port int, timeout time.Duration) (*process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	endWithParent(command)
	p := &process{url: fmt.Sprintf("http://127.0.0.1:%d", port), exited: make(chan struct{})}
	bound := make(chan struct{})
	started := make(chan error, 1)
	go func() {
		// The kernel ends the server when the thread that started it ends (see endWithParent), so that thread must
		// live as long as the server does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		output, err := command.StdoutPipe()
		if err == nil {
			command.Stderr = command.Stdout
			err = command.Start()
		}
		started <- err
		if err != nil {
			return
		}
		p.output = drain(output, p.url, bound)
		_ = command.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	p.handle = command.Process

	// It says that it listens only once it has bound the port. Asking the port alone could meet another process's server.
	ended := func() error { return fmt.Errorf("%s for port %d ended at once: %s", command.Path, port, p.output) }
	select {
	case <-bound:
	case <-p.exited:
		return nil, ended()
	case <-ctx.Done():
		return nil, p.giveUp(fmt.Errorf("%s did not listen on port %d within %v", command.Path, port, timeout))
	}
	for {
		err := ask(ctx, p.url)
		if err == nil {
			return p, nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-p.exited:
			return nil, ended()
		case <-ctx.Done():
			return nil, p.giveUp(fmt.Errorf("%s does not answer within %v: %w", p.url, timeout, err))
		}
	}
}

// ask makes a request that any answer is good enough for.
func ask(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer http.DefaultClient.CloseIdleConnections()
	return response.Body.Close()
}

// drain reads r to its end, closes bound when the line that names url has come, and returns the first lines. A line that
// is longer than the reader's buffer counts as several: nothing that the server writes may stop the reading, since the
// server would wait for that.
func drain(r io.Reader, url string, bound chan<- struct{}) string {
	var kept []string
	lines := bufio.NewReader(r)
	for {
		line, _, err := lines.ReadLine()
		if err != nil {
			return strings.Join(kept, "\n")
		}
		if bound != nil && strings.HasSuffix(string(line), "listening on "+url) {
			close(bound)
			bound = nil
		}
		if len(kept) < 20 {
			kept = append(kept, string(line))
		}
	}
}

// giveUp stops a server that does not come up, and returns the error with what the server wrote.
func (p *process) giveUp(err error) error {
	if failed := p.stop(); failed != nil {
		return errors.Join(err, failed)
	}
	return fmt.Errorf("%w: %s", err, p.output)
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	if err := p.handle.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process %d: %w", p.handle.Pid, err)
	}
	<-p.exited
	return nil
}
