package deadletter

import (
	"time"

	"github.com/oncekit/oncekit/batch"
)

// defaultCallTimeout is the default of Options.CallTimeout.
const defaultCallTimeout = 3 * time.Second

// Options are the options of a Sink. The zero value is a good default.
type Options struct {
	// Record returns Letter.Record of a record, as JSON. Nil means the text that the method JSON() string of
	// batch.Record.Value returns, which the values of this module's sources have. Where a record has neither, it is not
	// sent and stays Failed: a letter without its record would lose it. A source of one's own whose values are structs
	// with exported fields can marshal them:
	//
	//	o.Record = func(r *batch.Record) ([]byte, error) { return json.Marshal(r.Value) }
	Record func(r *batch.Record) ([]byte, error)

	// CallTimeout is how long one request to SQS may take, the SDK's retries included. The SDK has no timeout of its own,
	// so that a connection that hangs would hold its records, and those that wait for the next request, until the end of
	// the invocation. 0 means 3 seconds.
	CallTimeout time.Duration
}
