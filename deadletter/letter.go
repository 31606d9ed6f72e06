package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oncekit/oncekit/batch"
)

const (
	// Version is the Letter.Version of the letters that this package writes.
	Version = 1

	// MaxBytes is how large a letter may be as JSON, and how large those of one request may be together, in bytes
	// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html).
	MaxBytes = 1 << 20

	// MaxErrorBytes is how much of an error's text a letter carries, in bytes.
	MaxErrorBytes = 10 << 10
)

// Letter is the body of a message in the dead-letter queue, as JSON: what was given up, where it came from, and why. A
// function that reads the queue can take it as its payload, as sqs.Message[deadletter.Letter].
type Letter struct {
	// Version says what the fields mean. It is Version. A later one may add fields, but will not change these.
	Version int `json:"version"`
	// ID is batch.Record.ID: the messageId of an SQS message, the stream's identity of a stream record.
	ID string `json:"id"`
	// Key is the idempotency key, in plain text also where idempotency.Options.HashKeys is set. It is left out where the
	// record has none, or could not be decoded.
	Key string `json:"key,omitempty"`
	// Source is the ARN of the queue or stream that the record came from.
	Source string `json:"source,omitempty"`
	// Attempts is the number of the attempt that was the last one. It is left out where nobody counts them.
	Attempts int `json:"attempts,omitempty"`
	// Error is the text of the last attempt's error. Of a longer one than MaxErrorBytes the beginning is kept.
	Error string `json:"error"`
	// Permanent is whether the record was given up for what its error is, see batch.Permanent, and not for the number of
	// attempts.
	Permanent bool `json:"permanent"`
	// Time is when the record was given up, in UTC.
	Time time.Time `json:"time"`
	// Record is the record as it was delivered, in JSON: one element of the event's Records. White space between its tokens
	// is left out, and bytes that are not UTF-8 are U+FFFD. It is a JSON string if what the record gave for it is not JSON.
	Record json.RawMessage `json:"record"`
}

// jsoner is what the values of this module's sources have: the record as it was delivered.
type jsoner interface{ JSON() string }

// newLetter writes the letter of a record that was given up because of err.
func (s *Sink) newLetter(r *batch.Record, err error) (*Letter, error) {
	record, recordErr := s.record(r)
	if recordErr != nil {
		return nil, recordErr
	}
	l := &Letter{
		Version: Version, ID: r.ID, Key: r.Key, Source: r.Source, Attempts: r.Attempt,
		Permanent: batch.IsPermanent(err), Time: time.Now().UTC(), Record: record,
	}
	if err != nil {
		l.Error = shorten(err.Error())
	}
	return l, nil
}

// record returns Letter.Record, which is valid JSON in valid UTF-8.
func (s *Sink) record(r *batch.Record) (json.RawMessage, error) {
	var text string
	if s.options.Record != nil {
		raw, err := s.options.Record(r)
		if err != nil {
			return nil, fmt.Errorf("deadletter: Options.Record: %w", err)
		}
		text = string(raw)
	} else if value, ok := r.Value.(jsoner); ok {
		text = value.JSON()
	} else {
		return nil, fmt.Errorf("deadletter: record's Value is of type %T, want a method JSON() string, or Options.Record", r.Value)
	}
	if text == "" {
		return nil, errors.New("deadletter: record has no JSON, want the record as it was delivered")
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !json.Valid([]byte(text)) {
		return json.Marshal(text)
	}
	return json.RawMessage(text), nil
}

// noncharacters are the two that encoding/json leaves as they are and SQS does not take. In JSON they are inside strings,
// where they can be escaped.
var noncharacters = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)

// encode returns the letter as JSON that SQS takes: it allows the characters U+0009, U+000A, U+000D, U+0020 to U+D7FF,
// U+E000 to U+FFFD and those above U+FFFF
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html).
func (l *Letter) encode() (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		return "", fmt.Errorf("deadletter: letter: %w", err)
	}
	text := noncharacters.Replace(strings.TrimSuffix(b.String(), "\n"))
	if len(text) > MaxBytes {
		return "", fmt.Errorf("deadletter: letter is %d bytes, want at most %d, the limit of an SQS message", len(text), MaxBytes)
	}
	return text, nil
}

// shorten returns the text of an error, or its beginning and its length.
func shorten(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= MaxErrorBytes {
		return text
	}
	suffix := fmt.Sprintf("... (%d bytes)", len(text))
	end := MaxErrorBytes - len(suffix)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + suffix
}
