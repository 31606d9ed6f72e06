// Package child runs processes that answer a line with a line, for programs that end such processes at any moment.
package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
)

// ErrEnded means that a process has ended without an answer.
var ErrEnded = errors.New("child: the process has ended")

// Process is a running process. One goroutine at a time asks it.
type Process struct {
	handle  *os.Process
	stdin   io.WriteCloser
	answers chan []byte   // closed when the process writes no more
	exited  chan struct{} // closed when it has ended and was waited for
	state   *os.ProcessState
}

// Start starts a process that runs Serve. Its stdin and stdout must not be set. The thread that starts it lives as long
// as the process does, so that a Pdeathsig in its SysProcAttr means the end of this process and not of a thread.
func Start(command *exec.Cmd) (*Process, error) {
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("child: %w", err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("child: %w", err)
	}
	p := &Process{stdin: stdin, answers: make(chan []byte, 1), exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := command.Start()
		p.handle = command.Process
		started <- err
		if err != nil {
			return
		}
		for lines := bufio.NewReader(stdout); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break // a line without an end is an answer that the process did not get to give
			}
			p.answers <- line[:len(line)-1]
		}
		close(p.answers)
		_ = command.Wait() // the state says how it ended
		p.state = command.ProcessState
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("child: start %s: %w", command.Path, err)
	}
	return p, nil
}

// Ask sends a line, without its end, and returns the answer. The error matches ErrEnded if there is none.
func (p *Process) Ask(line []byte) ([]byte, error) {
	if _, err := p.stdin.Write(append(line[:len(line):len(line)], '\n')); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	answer, ok := <-p.answers
	if !ok {
		return nil, ErrEnded
	}
	return answer, nil
}

// Signal sends a signal. One that has ended already gets none.
func (p *Process) Signal(signal os.Signal) { _ = p.handle.Signal(signal) }

// Kill ends the process at once, wherever it is.
func (p *Process) Kill() { _ = p.handle.Kill() }

// Wait waits until the process has ended, and returns how.
func (p *Process) Wait() *os.ProcessState {
	<-p.exited
	return p.state
}

// Close tells the process that no more lines come, and waits for its end. The error says how it ended, if not well.
func (p *Process) Close() error {
	_ = p.stdin.Close()
	if state := p.Wait(); !state.Success() {
		return fmt.Errorf("child: %v", state)
	}
	return nil
}

// Serve is the other side: it answers the lines of in on out, one at a time, until in ends.
func Serve(in io.Reader, out io.Writer, answer func(line []byte) []byte) error {
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("child: %w", err)
		}
		if _, err := out.Write(append(answer(line[:len(line)-1]), '\n')); err != nil {
			return fmt.Errorf("child: %w", err)
		}
	}
}
