package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// answerWith starts a server that answers each request on a connection with the next text, and returns its address and
// what it was sent.
func answerWith(t *testing.T, answers ...string) (address string, received *bytes.Buffer) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	received = &bytes.Buffer{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		r := bufio.NewReader(connection)
		for _, answer := range answers {
			var m message
			if err := m.read(r); err != nil {
				return
			}
			received.Write(m.raw)
			if _, err := io.WriteString(connection, answer); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String(), received
}

func startTestProxy(t *testing.T, server string) (*proxy, net.Conn) {
	p, err := startProxy(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	connection, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return p, connection
}

func TestProxyPassesOnEveryByte(t *testing.T) {
	const (
		request = "POST / HTTP/1.1\r\nHost: x\r\nX-AMZ-Target: DynamoDB_20120810.PutItem\r\ncontent-length: 4\r\n\r\n{ }\n"
		reply   = "HTTP/1.1 200 OK\r\nServer: odd  \r\nContent-Length:2\r\n\r\n{}"
		refusal = "HTTP/1.1 400 Bad Request\r\nContent-Length: 22\r\n\r\nConditionalCheckFailed"
		failure = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
	)
	server, received := answerWith(t, reply, refusal, failure)
	p, connection := startTestProxy(t, server)
	for _, want := range []string{reply, refusal, failure} {
		if _, err := io.WriteString(connection, request); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(connection, got); err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("answer is %q, want %q", got, want)
		}
	}
	if got, want := received.String(), strings.Repeat(request, 3); got != want {
		t.Errorf("the server received %q, want %q", got, want)
	}
	if l, err := p.take(); err != nil || l != (load{3, 2, 0}) {
		t.Errorf("load is %+v with error %v, want 3 requests and 2 write units", l, err)
	}
	if l, err := p.take(); err != nil || l != (load{}) {
		t.Errorf("load after that is %+v with error %v, want none", l, err)
	}
}

func TestProxyDelays(t *testing.T) {
	server, _ := answerWith(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	p, connection := startTestProxy(t, server)
	const latency = 20 * time.Millisecond
	p.delay(latency)
	start := time.Now()
	if _, err := io.WriteString(connection, "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(connection, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < latency {
		t.Errorf("the answer came after %v, want no less than %v", took, latency)
	}
}

// What the proxy does not know would be passed on wrongly or not counted. The measurement must not go on.
func TestProxySaysWhatItDoesNotKnow(t *testing.T) {
	for _, test := range []struct{ request, want string }{
		{"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", `Content-Length is "many", want a number of bytes`},
		{"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", `Content-Length is "-1", want a number of bytes`},
		{"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", `Transfer-Encoding is "chunked", want a Content-Length`},
		{"POST / HTTP/1.1\r\nX-Amz-Target: DynamoDB_20120810.Query\r\nContent-Length: 0\r\n\r\n", `operation is "Query"`},
	} {
		server, _ := answerWith(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		p, connection := startTestProxy(t, server)
		if _, err := io.WriteString(connection, test.request); err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadFull(connection, make([]byte, 1)) // an answer, or the end of the connection
		connection.Close()
		p.close()
		if _, err := p.take(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error is %v, want %q", test.request, err, test.want)
		}
	}
}

func TestMessageHasALargeBody(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	var m message
	err := m.read(bufio.NewReader(strings.NewReader(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))))
	if err != nil || m.status != 200 || string(m.body()) != body {
		t.Errorf("status is %d, the body has %d bytes, error is %v; want 200, %d and nil", m.status, len(m.body()), err, len(body))
	}
}
