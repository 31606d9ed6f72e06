package eventbridgetest

import (
	"fmt"
	"slices"
	"time"
)

// A Queue is one of the two dead-letter queues. On AWS each must be set, or what would go there is lost.
type Queue int

const (
	// TargetQueue is that of the rule's target, or of the subscriber: for events that EventBridge could not deliver.
	TargetQueue Queue = iota + 1
	// FunctionQueue is that of the function, its dead-letter queue or its on-failure destination: for events that Lambda
	// took, and that the function failed with.
	FunctionQueue
)

// String returns the name of the constant.
func (q Queue) String() string {
	switch q {
	case TargetQueue:
		return "TargetQueue"
	case FunctionQueue:
		return "FunctionQueue"
	default:
		return fmt.Sprintf("Queue(%d)", int(q))
	}
}

// A Reason is why events were given up.
type Reason int

const (
	// RetriesExhausted: MaximumRetryAttempts retries have failed.
	RetriesExhausted Reason = iota + 1
	// EventAgeExceeded: the events have reached MaximumEventAge.
	EventAgeExceeded
	// NotRetriable: Options.TargetFault said ErrNotRetriable.
	NotRetriable
)

// String returns the name of the constant.
func (r Reason) String() string {
	switch r {
	case RetriesExhausted:
		return "RetriesExhausted"
	case EventAgeExceeded:
		return "EventAgeExceeded"
	case NotRetriable:
		return "NotRetriable"
	default:
		return fmt.Sprintf("Reason(%d)", int(r))
	}
}

// DeadLetter is what a dead-letter queue gets.
type DeadLetter struct {
	Queue Queue
	// IDs are those of the events.
	IDs []string
	// Body is the message: the event, or what the function was to be invoked with. A subscriber's queue gets a record about
	// the events, without them.
	Body string
	// Reason is why the events were given up.
	Reason Reason
	// Retries is how often they were tried again, throttles of asynchronous invocations not counted.
	Retries int
	// Invocations is how often the function was invoked with them.
	Invocations int
	// Err is the last failure, nil if there was none.
	Err error
	// At is when they were given up.
	At time.Time
}

// DeadLetters returns what has gone to either of the two dead-letter queues, in that order.
func (b *Bus) DeadLetters() []DeadLetter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.deadLetters)
}

// deadLetter gives up w. The caller holds b.mu.
func (b *Bus) deadLetter(w *work, reason Reason, now time.Time) {
	b.remove(w)
	l := DeadLetter{
		Queue: FunctionQueue, IDs: w.ids(), Reason: reason, Retries: max(0, w.failures-1), Invocations: w.invocations, Err: w.err, At: now,
	}
	elements := make([][]byte, len(w.parts))
	for i, p := range w.parts {
		p.event.deadLettered = now
		elements[i] = p.json
	}
	l.Body = string(b.payload(elements))
	if !w.queued {
		l.Queue = TargetQueue
		if b.options.Subscriber != nil {
			l.Body = string(b.failureRecord(w, &l))
		}
	}
	b.stats.DeadLettered += len(w.parts)
	b.deadLetters = append(b.deadLetters, l)
}

// failureRecord is what the queue of a subscriber gets
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-retry.html).
type failureRecord struct {
	Version        string          `json:"version"`
	BusARN         string          `json:"busArn"`
	SubscriberARN  string          `json:"subscriberArn"`
	TargetARN      string          `json:"targetArn"`
	ErrorCode      string          `json:"errorCode"`
	ErrorMessage   string          `json:"errorMessage"`
	Condition      string          `json:"exhaustedRetryCondition,omitempty"`
	RetryAttempts  int             `json:"retryAttempts"`
	FailedMessages []failedMessage `json:"failedMessages"`
}

type failedMessage struct {
	EventID         string  `json:"eventId"`
	GroupID         *string `json:"eventGroupId"`
	DeduplicationID *string `json:"deduplicationId"`
	Timestamp       string  `json:"timestamp"`
}

func (b *Bus) failureRecord(w *work, l *DeadLetter) []byte {
	r := failureRecord{
		Version: "1.0", BusARN: b.ARN(), SubscriberARN: arnPrefix + "subscriber/" + b.name + "/example1234567890abcdef12",
		TargetARN: functionARN, ErrorCode: "TARGET_ERROR", RetryAttempts: l.Retries,
	}
	if l.Err != nil {
		r.ErrorMessage = l.Err.Error()
	}
	switch l.Reason {
	case RetriesExhausted:
		r.Condition = "MaximumRetryAttempts"
	case EventAgeExceeded:
		r.Condition = "MaximumEventAgeInSeconds"
	}
	for _, p := range w.parts {
		r.FailedMessages = append(r.FailedMessages, failedMessage{
			EventID: p.event.id, GroupID: orNull(p.event.Group), DeduplicationID: orNull(p.event.DeduplicationID),
			Timestamp: p.event.put.UTC().Format(time.RFC3339),
		})
	}
	return encode(r)
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
