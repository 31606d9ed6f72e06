// Package localserver gives tests the servers that `make tools` installs, each started on a free loopback port once a
// test process, and what clients need to talk to them.
//
// Packages such as dynamotest and kinesalite say which server it is.
package localserver

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// Server is a server that the tests of one process share. Its fields do not change once it is used.
type Server struct {
	// Package is the package that tests get the server from. Errors begin with it.
	Package string

	// Variable is the environment variable that names an endpoint to use instead; then no server is started.
	Variable string

	// Tool is the file below .tools/ that must be installed, "bin/dynoxide" for example.
	Tool string

	// Command returns the command that runs the tool, whose path is given, on a port of 127.0.0.1. Once it has bound
	// the port, and not before, the server must print a line with "listening on http://127.0.0.1:" and the port.
	Command func(tool string, port int) *exec.Cmd

	mu      sync.Mutex
	armed   bool // StopAfter was called, so that something stops the server
	stopped bool
	running *process
}

// TestingM is the part of *testing.M that is used.
type TestingM interface{ Run() int }

// StopAfter returns an m that stops the server after the tests ran. Every package that calls Start has it in its
// TestMain: nothing else knows when the last test has ended.
func (s *Server) StopAfter(m TestingM) TestingM {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
	return stopAfter{server: s, m: m}
}

type stopAfter struct {
	server *Server
	m      TestingM
}

func (a stopAfter) Run() int {
	defer a.server.stop()
	return a.m.Run()
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.running == nil {
		return
	}
	if err := s.running.stop(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Package, err)
	}
}

// Start returns the URL of the endpoint, and starts the server if no test of this process has done so yet. Where it is
// not installed, the test is skipped, or fails where the environment variable CI is set.
func (s *Server) Start(t testing.TB) string {
	t.Helper()
	if url := os.Getenv(s.Variable); url != "" {
		return url
	}
	tool, err := find(s.Tool)
	if err != nil {
		missing(t, fmt.Errorf("%s: %w, or set %s", s.Package, err, s.Variable))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.armed:
		t.Fatalf("%[1]s: TestMain does not call %[1]s.StopAfter, so nothing would stop the server", s.Package)
	case s.stopped:
		t.Fatalf("%s: the server is stopped already", s.Package)
	case s.running == nil:
		command := func(port int) *exec.Cmd { return s.Command(tool, port) }
		if s.running, err = start(command); err != nil {
			t.Fatalf("%s: %v", s.Package, err)
		}
	}
	return s.running.url
}
