package deadletter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/oncekit/oncekit/batch"
)

// Client is what a Sink needs of the SDK's *sqs.Client.
type Client interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

var _ Client = (*sqs.Client)(nil)

// Sink sends records that are given up to an SQS queue. It is safe for concurrent use, and is made once and used by all
// the invocations of a process.
type Sink struct {
	client  Client
	url     string
	fifo    bool
	options Options

	mu      sync.Mutex // not held while anything waits
	next    *request   // gathers letters while requests are under way, or nil
	sending int        // requests under way that someone waits for
}

// New returns a Sink that sends to the queue with this URL, standard or FIFO. It makes no request.
//
// The error names each argument and option that cannot work, what it is and what it may be.
func New(client Client, queueURL string, optFns ...func(*Options)) (*Sink, error) {
	var o Options
	for _, f := range optFns {
		if f != nil {
			f(&o)
		}
	}
	var errs []error
	if isNil(client) {
		errs = append(errs, errors.New("deadletter: client is nil, want a *sqs.Client"))
	}
	if !isQueueURL(queueURL) {
		errs = append(errs, fmt.Errorf("deadletter: queue URL is %q, want one such as "+
			"https://sqs.eu-central-1.amazonaws.com/123456789012/orders-dead", queueURL))
	}
	if o.CallTimeout < 0 {
		errs = append(errs, fmt.Errorf("deadletter: Options.CallTimeout is %v, want 0 (for %v) or more", o.CallTimeout, defaultCallTimeout))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaultCallTimeout
	}
	return &Sink{client: client, url: queueURL, fifo: isFIFO(queueURL), options: o}, nil
}

// isNil reports whether client is nil or a nil pointer in an interface, which would panic in the first call only.
func isNil(client Client) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// isQueueURL tells a queue's URL from its name and its ARN, which are what is given by mistake. The URL ends in the queue's
// name: anything behind it would hide that a queue is a FIFO queue.
func isQueueURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Path != "" &&
		!strings.ContainsAny(text, "?#") && !strings.HasSuffix(text, "/")
}

// DeadLetter sends a Letter of the record to the queue, and returns nil if SQS has taken it. It is a
// batch.Options.DeadLetter. A nil cause is an error without text.
//
// Calls that are made at the same time share requests: the first sends at once, and those that come while its request is
// under way are sent together after it, or as soon as they fill a request of their own. Nobody waits for a timer.
//
// When ctx ends before SQS has answered, the error is ctx's cause. The letter may reach the queue even so, and then it does
// again with the record's next delivery. Letters of other calls are not held up by that. A request whose callers have all
// gone is cancelled, so that after the last call nothing runs but a Client that has yet to notice that.
//
// The Client sees the values of one of the contexts of a request's letters, not its end, and Options.CallTimeout.
//
// The error is an *EntryError if SQS has refused this letter, and otherwise one that says why it was not sent, or not
// answered for: among others that it is larger than MaxBytes.
func (s *Sink) DeadLetter(ctx context.Context, r *batch.Record, cause error) error {
	if r == nil {
		return errors.New("deadletter: record is nil, want a record")
	}
	letter, err := s.newLetter(r, cause)
	if err != nil {
		return err
	}
	body, err := letter.encode()
	if err != nil {
		return err
	}
	e := &entry{ctx: ctx, body: body, result: make(chan error, 1)}
	if s.fifo {
		e.group, e.deduplication = groupID(r), deduplicationID(r)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("deadletter: letter was not sent: %w", context.Cause(ctx))
	}
	q := s.join(e)
	select {
	case err := <-e.result:
		return err
	case <-ctx.Done():
		return s.leave(q, e)
	}
}
