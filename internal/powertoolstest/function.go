package powertoolstest

import (
	"errors"
	"testing"
	"time"

	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/localserver"
)

// Config is the part of Powertools' IdempotencyConfig that tests set.
type Config struct {
	EventKey                string `json:"eventKeyJmesPath,omitempty"`
	PayloadValidation       string `json:"payloadValidationJmesPath,omitempty"`
	ExpiresAfterSeconds     int    `json:"expiresAfterSeconds,omitempty"`
	HashFunction            string `json:"hashFunction,omitempty"`
	ThrowOnNoIdempotencyKey bool   `json:"throwOnNoIdempotencyKey,omitempty"`
}

// Layer is the part of the configuration of Powertools' DynamoDBPersistenceLayer that tests set.
type Layer struct {
	SortKey        string `json:"sortKeyAttr,omitempty"`
	PartitionValue string `json:"staticPkValue,omitempty"`
}

// Function is a function that Powertools makes idempotent.
type Function struct {
	// Name is the Lambda function's.
	Name string
	// KeyPrefix replaces it in keys. Empty means that it does not.
	KeyPrefix string
	// Table is on the server of dynamotest.
	Table  string
	Config Config
	Layer  Layer
	// Remaining is how long the invocation has left, which is the claim's lease. 0 means that Powertools does not know.
	Remaining time.Duration
}

// options are a Function for the process.
type options struct {
	Function  string `json:"function"`
	KeyPrefix string `json:"keyPrefix,omitempty"`
	Table     string `json:"table"`
	Endpoint  string `json:"endpoint"`
	Region    string `json:"region"`
	Config    Config `json:"config"`
	Layer     Layer  `json:"layer"`
}

func (f Function) options(endpoint string) *options {
	return &options{f.Name, f.KeyPrefix, f.Table, endpoint, localserver.Region(), f.Config, f.Layer}
}

// Key is what Powertools computes of a payload.
type Key struct {
	Key        string `json:"key"`        // the function's name included
	Validation string `json:"validation"` // empty without Config.PayloadValidation
}

// Keys returns the keys that Powertools computes of the payloads, which are JSON. It needs no table.
func (p *Peer) Keys(t testing.TB, f Function, payloads ...string) []Key {
	t.Helper()
	_, answers := p.ask(t, request{Do: "keys", Options: f.options("http://127.0.0.1:1"), Payloads: payloads})
	a := p.receive(t, answers)
	if a.Error != nil {
		t.Fatalf("powertoolstest: %v", a.Error)
	}
	if len(a.Keys) != len(payloads) {
		t.Fatalf("powertoolstest: node answers with %d keys, want %d", len(a.Keys), len(payloads))
	}
	return a.Keys
}

// Outcome is what became of a call.
type Outcome struct {
	// Ran is whether the function was called.
	Ran bool
	// Result is what the call returned, in JSON; empty for undefined.
	Result string
	// Err is the *Error that it threw.
	Err error
}

// Call calls f with the payload, and ends the function, if it is called, with the result: JSON, or empty for undefined.
func (p *Peer) Call(t testing.TB, f Function, payload, result string) Outcome {
	t.Helper()
	r := p.Begin(t, f, payload)
	if r.Started() {
		r.Return(t, result)
	}
	return r.Outcome(t)
}

// Running is a call under way.
type Running struct {
	peer    *Peer
	id      int
	answers <-chan answer
	first   answer
}

// Begin calls f with the payload, and returns when the function has begun, or when the call ended without it.
func (p *Peer) Begin(t testing.TB, f Function, payload string) *Running {
	t.Helper()
	id, answers := p.ask(t, request{
		Do: "call", Options: f.options(dynamotest.Start(t)), Payload: payload, Milliseconds: f.Remaining.Milliseconds(),
	})
	return &Running{p, id, answers, p.receive(t, answers)}
}

// Started reports whether the function has begun.
func (r *Running) Started() bool { return r.first.Started }

// Return makes the function return the result, which is JSON, or empty for undefined.
func (r *Running) Return(t testing.TB, result string) {
	t.Helper()
	end := request{ID: r.id, Do: "end"}
	if result != "" {
		end.Result = &result
	}
	r.peer.send(t, end)
}

// Throw makes the function throw an error with the message.
func (r *Running) Throw(t testing.TB, message string) {
	t.Helper()
	r.peer.send(t, request{ID: r.id, Do: "end", Failure: message})
}

// Outcome waits for the end of the call.
func (r *Running) Outcome(t testing.TB) Outcome {
	t.Helper()
	a := r.first
	if a.Started {
		a = r.peer.receive(t, r.answers)
	}
	o := Outcome{Ran: r.first.Started}
	if a.Result != nil {
		o.Result = *a.Result
	}
	if a.Error != nil {
		o.Err = a.Error
	}
	return o
}

// Threw reports whether err is one that Powertools threw under the name, "IdempotencyAlreadyInProgressError" for example.
func Threw(err error, name string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Name == name
}
