package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// maxEntries is how many messages one request may have
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html).
const maxEntries = 10

// entry is one letter on its way, and the call that waits for it.
type entry struct {
	ctx                  context.Context // the caller's
	body                 string
	group, deduplication string     // empty for a standard queue
	result               chan error // has room for the one that is sent, so that nobody waits for a caller who has gone
}

// request is up to ten letters that are sent together. All of it is behind Sink.mu; once it is under way, entries does not
// change any more.
//
// A request is gathering while it is Sink.next. It is under way from send until end, and end is called once: by the
// goroutine that calls the Client, when that returns, or by the last caller who leaves. What can come together is decided
// by the lock:
//
//   - The answer and the end of a caller's context: the caller looks for its result under the lock before it leaves. A
//     letter that SQS has taken is never told as not sent because of that.
//   - A caller leaves a gathering request: its letter is taken out, and the request is dropped with its last letter. If
//     send comes first, the letter goes out, and its result is received by nobody.
//   - The first caller leaves: the others' letters do not notice. The request has a context of its own, which is
//     cancelled when the last caller has left and when Options.CallTimeout is over.
//   - The last caller leaves a request under way: it is cancelled and no longer counts as under way, so that what has
//     gathered behind it goes out at once, whatever the Client does about its cancelled context. The goroutine that
//     comes back from it later finds it ended.
//   - A request ends while another gathers: that one goes out. No letter is left to gather without a request under way,
//     since join sends at once if there is none.
type request struct {
	entries []*entry
	bytes   int
	waiting int // callers that have not left
	cancel  context.CancelFunc
	ended   bool
}

// join puts a letter into the request that gathers, and sends what has to go.
func (s *Sink) join(e *entry) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil && s.next.bytes+len(e.body) > MaxBytes {
		s.send()
	}
	if s.next == nil {
		s.next = &request{}
	}
	q := s.next
	q.entries = append(q.entries, e)
	q.bytes += len(e.body)
	q.waiting++
	if s.sending == 0 || len(q.entries) == maxEntries {
		s.send()
	}
	return q
}

// leave gives up a letter whose caller's context has ended, and returns what the caller returns.
func (s *Sink) leave(q *request, e *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case err := <-e.result:
		return err
	default:
	}
	q.waiting--
	if q == s.next {
		q.entries = slices.DeleteFunc(q.entries, func(other *entry) bool { return other == e })
		q.bytes -= len(e.body)
		if q.waiting == 0 {
			s.next = nil
		}
		return fmt.Errorf("deadletter: letter was not sent: %w", context.Cause(e.ctx))
	}
	if q.waiting == 0 {
		q.cancel()
		s.end(q)
	}
	return fmt.Errorf("deadletter: no answer from SQS, the letter may be in the queue: %w", context.Cause(e.ctx))
}

// send sets the gathering request under way. The caller holds the lock.
func (s *Sink) send() {
	q := s.next
	s.next = nil
	s.sending++
	var ctx context.Context
	ctx, q.cancel = context.WithTimeout(context.WithoutCancel(q.entries[0].ctx), s.options.CallTimeout)
	go s.call(ctx, q)
}

// end takes a request off those under way, once, and sends what has gathered behind it. The caller holds the lock.
func (s *Sink) end(q *request) {
	if q.ended {
		return
	}
	q.ended = true
	s.sending--
	if s.next != nil {
		s.send()
	}
}

// call makes the request and tells each caller what became of its letter. A Client that panics or calls runtime.Goexit
// fails them all: on this goroutine a panic would end the process.
func (s *Sink) call(ctx context.Context, q *request) {
	errs := make([]error, len(q.entries))
	fail := func(err error) {
		for i := range errs {
			errs[i] = err
		}
	}
	fail(errors.New("deadletter: Client called runtime.Goexit"))
	defer func() {
		if value := recover(); value != nil {
			fail(fmt.Errorf("deadletter: Client panicked: %v", value))
		}
		q.cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, e := range q.entries {
			e.result <- errs[i]
		}
		s.end(q)
	}()
	output, err := s.client.SendMessageBatch(ctx, s.input(q))
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		fail(fmt.Errorf("deadletter: no answer from %s within %v, the letter may be there: %w", s.url, s.options.CallTimeout, err))
	case err != nil:
		fail(fmt.Errorf("deadletter: send to %s: %w", s.url, err))
	default:
		fail(errors.New("deadletter: SQS did not say what became of the letter"))
		read(output, errs)
	}
}

// input returns the request as the SDK has it. An entry's Id is its index.
func (s *Sink) input(q *request) *sqs.SendMessageBatchInput {
	entries := make([]types.SendMessageBatchRequestEntry, len(q.entries))
	for i, e := range q.entries {
		entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(e.body)}
		if s.fifo {
			entries[i].MessageGroupId, entries[i].MessageDeduplicationId = aws.String(e.group), aws.String(e.deduplication)
		}
	}
	return &sqs.SendMessageBatchInput{QueueUrl: aws.String(s.url), Entries: entries}
}

// read sets the error of each entry that SQS has answered for. One that it names both as successful and as failed is
// failed.
func read(output *sqs.SendMessageBatchOutput, errs []error) {
	if output == nil {
		return
	}
	set := func(id *string, err error) {
		if i, bad := strconv.Atoi(aws.ToString(id)); bad == nil && i >= 0 && i < len(errs) {
			errs[i] = err
		}
	}
	for _, e := range output.Successful {
		set(e.Id, nil)
	}
	for _, e := range output.Failed {
		set(e.Id, &EntryError{Code: aws.ToString(e.Code), Message: aws.ToString(e.Message), SenderFault: e.SenderFault})
	}
}
