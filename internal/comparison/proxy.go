package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// proxy stands between a client and the server, adds latency and adds up what the requests cost. It passes messages on
// as they are, byte for byte: net/http would take more time for a request than the server does.
type proxy struct {
	url      string
	server   string // host and port
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	latency time.Duration
	total   load
	err     error // the first request without a rule
	closed  bool
	open    map[net.Conn]bool
}

// startProxy starts a proxy in front of the server at a host and port.
func startProxy(server string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("comparison: %w", err)
	}
	p := &proxy{url: "http://" + listener.Addr().String(), server: server, listener: listener, open: map[net.Conn]bool{}}
	p.running.Go(func() {
		for {
			down, err := listener.Accept()
			if err != nil {
				return // closed
			}
			p.running.Go(func() { p.serve(down) })
		}
	})
	return p, nil
}

// close ends all connections.
func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// delay makes every request wait before it is passed on.
func (p *proxy) delay(latency time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = latency
}

// take returns what the requests cost since it was last called.
func (p *proxy) take() (load, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	total, err := p.total, p.err
	p.total, p.err = load{}, nil
	return total, err
}

// opened notes a connection that close has to end, and reports false if that has happened.
func (p *proxy) opened(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return !p.closed
}

func (p *proxy) ended(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// serve passes on what comes over one connection, over one connection to the server, until either end closes.
func (p *proxy) serve(down net.Conn) {
	defer p.ended(down)
	up, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer p.ended(up)
	if !p.opened(down) || !p.opened(up) {
		return
	}
	fromClient, fromServer := bufio.NewReader(down), bufio.NewReader(up)
	var request, reply message
	for {
		if err := request.read(fromClient); err != nil {
			p.note(load{}, ignoreEnd(err))
			return
		}
		p.mu.Lock()
		latency := p.latency
		p.mu.Unlock()
		time.Sleep(latency)
		if _, err := up.Write(request.raw); err != nil {
			return
		}
		if err := reply.read(fromServer); err != nil {
			p.note(load{}, ignoreEnd(err))
			return
		}
		p.note(loadOf(request.operation, request.body(), reply.status, reply.body()))
		if _, err := down.Write(reply.raw); err != nil {
			return
		}
	}
}

func (p *proxy) note(l load, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.add(l)
	if p.err == nil {
		p.err = err
	}
}

// ignoreEnd returns nil for an error that says that a connection was closed or reset.
func ignoreEnd(err error) error {
	var network *net.OpError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
		return nil
	}
	return err
}

// message is an HTTP message.
type message struct {
	raw       []byte // all of it
	head      int    // how much of raw is not the body
	status    int    // of a reply
	operation string // of a request, "PutItem" for example
}

func (m *message) body() []byte { return m.raw[m.head:] }

// read reads a message. It knows as much of HTTP as the clients and the server make use of.
func (m *message) read(r *bufio.Reader) error {
	m.raw, m.status, m.operation = m.raw[:0], 0, ""
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		m.raw = append(m.raw, line...)
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if first {
			if bytes.HasPrefix(line, []byte("HTTP/")) && len(line) >= len("HTTP/1.1 200") {
				m.status, _ = strconv.Atoi(string(line[len("HTTP/1.1 "):len("HTTP/1.1 200")]))
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch strings.ToLower(string(name)) {
		case "content-length":
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return fmt.Errorf("comparison: Content-Length is %q, want a number of bytes", value)
			}
		case "transfer-encoding":
			return fmt.Errorf("comparison: Transfer-Encoding is %q, want a Content-Length", value)
		case "x-amz-target":
			_, operation, _ := bytes.Cut(value, []byte("."))
			m.operation = string(operation)
		}
	}
	m.head = len(m.raw)
	m.raw = append(m.raw, make([]byte, length)...)
	_, err := io.ReadFull(r, m.body())
	return err
}
