package dynamotest

import (
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Proxy passes requests on to a server, counts them, and does to them what it is told. Its zero value is not usable.
type Proxy struct {
	// URL is what clients connect to.
	URL string

	server    string
	transport *http.Transport

	mu       sync.Mutex
	requests map[string]int
	script   map[string][]Fault
	chance   *rand.Rand
	choose   func(chance *rand.Rand, operation string) Fault
}

// NewProxy returns a proxy in front of the endpoint of Start. It ends with the test.
func NewProxy(t testing.TB) *Proxy {
	t.Helper()
	p := &Proxy{
		server:    Start(t),
		transport: &http.Transport{MaxIdleConnsPerHost: 64},
		requests:  make(map[string]int),
		script:    make(map[string][]Fault),
	}
	front := httptest.NewServer(p)
	p.URL = front.URL
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

// Client returns a client whose requests go through the proxy.
func (p *Proxy) Client(t testing.TB, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return ClientFor(t, p.URL, optFns...)
}

// Script says what becomes of the next requests of an operation such as "PutItem", one fault each; nil passes a
// request on. It replaces what is left of an earlier script. What comes after the script is left to Random.
func (p *Proxy) Script(operation string, faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script[operation] = faults
}

// Random has choose decide what becomes of each request that no script covers; nil passes it on. The choices are the
// same for the same seed and the same order of requests. A nil choose ends it.
func (p *Proxy) Random(seed uint64, choose func(chance *rand.Rand, operation string) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chance, p.choose = rand.New(rand.NewPCG(seed, seed)), choose
}

// Requests returns how many requests of each operation came since the last call, or since the proxy started.
func (p *Proxy) Requests() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted := maps.Clone(p.requests)
	clear(p.requests)
	return counted
}

// next counts a request and returns its fault.
func (p *Proxy) next(operation string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[operation]++
	if script := p.script[operation]; len(script) > 0 {
		p.script[operation] = script[1:]
		return script[0]
	}
	if p.choose != nil {
		return p.choose(p.chance, operation)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	x := &Exchange{proxy: p, w: w, request: r, body: body}
	if fault := p.next(operation); fault != nil {
		fault(x)
		return
	}
	x.Pass()
}

// Exchange is a request on its way through a Proxy.
type Exchange struct {
	proxy   *Proxy
	w       http.ResponseWriter
	request *http.Request
	body    []byte
}

// Fault does something to an exchange, instead of Pass.
type Fault func(*Exchange)

// Reply is a server's answer.
type Reply struct {
	Status int
	Body   []byte
}

// Forward passes the request on to the server and returns its answer. It does so even if the client has gone: what is
// on the wire arrives.
func (x *Exchange) Forward() (Reply, error) {
	request, err := http.NewRequest(x.request.Method, x.proxy.server+x.request.URL.Path, bytes.NewReader(x.body))
	if err != nil {
		return Reply{}, err
	}
	request.Header = x.request.Header.Clone()
	response, err := x.proxy.transport.RoundTrip(request)
	if err != nil {
		return Reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Reply{Status: response.StatusCode, Body: body}, err
}

// Answer sends a reply to the client. The checksum that DynamoDB adds is left out; the SDK does without.
func (x *Exchange) Answer(r Reply) {
	x.w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	x.w.WriteHeader(r.Status)
	_, _ = x.w.Write(r.Body)
}

// Pass passes the request on and its answer back.
func (x *Exchange) Pass() {
	reply, err := x.Forward()
	if err != nil {
		x.Reset()
		return
	}
	x.Answer(reply)
}

// Reset resets the client's connection.
func (x *Exchange) Reset() {
	connection, _, err := x.w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset rather than an orderly end
	}
	_ = connection.Close()
}

// Wait waits for d, or until the client has gone.
func (x *Exchange) Wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.request.Context().Done():
	}
}
