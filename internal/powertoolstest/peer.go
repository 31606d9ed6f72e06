// Package powertoolstest lets tests call functions that Powertools for AWS Lambda (TypeScript) makes idempotent, with its own
// code in a Node.js process, on the same tables as oncekit.
//
// `make tools` installs Powertools, at the version in package.json. Where it is not installed, tests are skipped, or fail
// where the environment variable CI is set.
package powertoolstest

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/oncekit/oncekit/internal/localserver"
)

//go:embed peer.js
var script string

// Peer is a Node.js process that runs Powertools. It is safe for concurrent use.
type Peer struct {
	stdin io.Writer

	mu      sync.Mutex
	id      int
	waiting map[int]chan answer
	ended   error // why no more answers come
}

// request is a line to the process.
type request struct {
	ID           int      `json:"id"`
	Do           string   `json:"do"`
	Options      *options `json:"options,omitempty"`
	Payloads     []string `json:"payloads,omitempty"`
	Payload      string   `json:"payload,omitempty"`
	Milliseconds int64    `json:"milliseconds,omitempty"`
	Result       *string  `json:"result,omitempty"`
	Failure      string   `json:"failure,omitempty"`
}

// answer is a line from it.
type answer struct {
	ID      int     `json:"id"`
	Started bool    `json:"started"`
	Result  *string `json:"result"`
	Keys    []Key   `json:"keys"`
	Error   *Error  `json:"error"`
}

// Error is what Powertools or the function threw.
type Error struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// Error returns the error's name and message.
func (e *Error) Error() string { return e.Name + ": " + e.Message }

// Start starts a process. It ends with the test.
func Start(t testing.TB) *Peer {
	t.Helper()
	modules := filepath.Dir(localserver.Tool(t, "powertools/package.json"))
	command := exec.Command("node", "-e", script, modules)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints lines
	command.Stderr = &complaints
	if err := command.Start(); err != nil {
		t.Fatalf("powertoolstest: %v", err)
	}
	p := &Peer{stdin: stdin, waiting: make(map[int]chan answer)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(stdout, &complaints)
	}()
	t.Cleanup(func() {
		_ = stdin.Close() // upon which it ends; it also ends so if this process dies
		killed := time.AfterFunc(10*time.Second, func() { _ = command.Process.Kill() })
		defer killed.Stop()
		<-read
		if err := command.Wait(); err != nil {
			t.Errorf("powertoolstest: node: %v: %s", err, complaints.String())
		}
	})
	return p
}

// read hands each answer to whoever waits for it, until there are no more.
func (p *Peer) read(stdout io.Reader, complaints fmt.Stringer) {
	var err error
	for d := json.NewDecoder(bufio.NewReader(stdout)); ; {
		var a answer
		if err = d.Decode(&a); err != nil {
			break
		}
		p.mu.Lock()
		c := p.waiting[a.ID]
		p.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = fmt.Errorf("powertoolstest: node has ended: %w: %s", err, complaints)
	for _, c := range p.waiting {
		close(c)
	}
	p.waiting = nil
}

// ask sends a request, and returns its id and a channel for its answers, at most two.
func (p *Peer) ask(t testing.TB, r request) (int, <-chan answer) {
	t.Helper()
	c := make(chan answer, 2)
	p.mu.Lock()
	if p.ended != nil {
		p.mu.Unlock()
		t.Fatal(p.ended)
	}
	p.id++
	r.ID = p.id
	p.waiting[r.ID] = c
	p.mu.Unlock()
	p.send(t, r)
	return r.ID, c
}

// send writes one line.
func (p *Peer) send(t testing.TB, r request) {
	t.Helper()
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		t.Fatalf("powertoolstest: %v", err)
	}
}

// receive returns the next answer.
func (p *Peer) receive(t testing.TB, c <-chan answer) answer {
	t.Helper()
	select {
	case a, ok := <-c:
		if !ok {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Fatal(p.ended)
		}
		return a
	case <-time.After(30 * time.Second):
		t.Fatal("powertoolstest: node has not answered within 30s")
		return answer{}
	}
}

// lines keeps what is written to it.
type lines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
