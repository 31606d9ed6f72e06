package redistest

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// Proxy passes connections on to a server, counts the scripts that clients run, and does to them what it is told.
type Proxy struct {
	// Address is what clients connect to.
	Address string

	server string
	wg     sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	connections map[net.Conn]bool
	scripts     int
	faults      []Fault
	choose      func() Fault
}

// Fault is what becomes of a script, or of the scripts of a pipeline that come together.
type Fault int

const (
	Pass      Fault = iota
	Drop            // the request does not arrive, and the connection is reset
	LoseReply       // the request arrives, and the connection is reset when the server answers
	Hang            // the request arrives, and no reply comes
)

// NewProxy returns a proxy in front of a server. It ends with the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: listener.Addr().String(), server: server, connections: map[net.Conn]bool{}}
	p.wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		p.closed = true
		for c := range p.connections {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

// Script says what becomes of the next scripts, one fault each. It replaces what is left of an earlier call. What comes
// after that is left to Choose.
func (p *Proxy) Script(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// Choose has a function decide what becomes of each script that Script does not cover. Nil passes all.
func (p *Proxy) Choose(choose func() Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.choose = choose
}

// Scripts returns how many requests with scripts came since the last call. A pipeline that comes in one piece is one.
func (p *Proxy) Scripts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.scripts
	p.scripts = 0
	return n
}

func (p *Proxy) next() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts++
	if len(p.faults) > 0 {
		f := p.faults[0]
		p.faults = p.faults[1:]
		return f
	}
	if p.choose != nil {
		return p.choose()
	}
	return Pass
}

// keep has a connection closed with the proxy. It reports false if that has ended.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections[c] = true
	return !p.closed
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(client) || !p.keep(server) {
		return
	}
	x := &exchange{client: client, server: server}
	var replies sync.WaitGroup
	replies.Go(x.passReplies)
	defer replies.Wait()
	x.passRequests(p.next)
}

// exchange is a connection on its way through a Proxy.
type exchange struct {
	client, server net.Conn

	mu    sync.Mutex
	fault Fault // of the script that is under way
}

func (x *exchange) passRequests(next func() Fault) {
	defer x.server.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := x.client.Read(buffer)
		if err != nil {
			return
		}
		if bytes.Contains(bytes.ToUpper(buffer[:n]), []byte("\r\nEVAL")) {
			fault := next()
			if fault == Drop {
				reset(x.client)
				return
			}
			x.mu.Lock()
			x.fault = fault
			x.mu.Unlock()
		}
		if _, err := x.server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (x *exchange) passReplies() {
	defer x.client.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := x.server.Read(buffer)
		if err != nil {
			return
		}
		// A client may send a PING meanwhile, whose reply says nothing of the script.
		if buffer[0] == '*' || buffer[0] == '-' {
			x.mu.Lock()
			fault := x.fault
			x.mu.Unlock()
			switch fault {
			case LoseReply:
				reset(x.client)
				return
			case Hang:
				continue
			}
		}
		if _, err := x.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// reset ends a connection with a reset rather than in order.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
