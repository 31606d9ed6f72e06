//go:build unix

package deploytest

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/oncekit/oncekit/deadletter"
)

// Letters is a server that takes the letters of a dead-letter sink, as SQS does.
type Letters struct {
	url   string
	mu    sync.Mutex
	taken []deadletter.Letter
}

// NewLetters starts a server that ends with the test.
func NewLetters(t *testing.T) *Letters {
	t.Helper()
	l := new(Letters)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := l.take(w, r); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

// Env returns what a function's environment needs so that its sink sends here: DEAD_LETTER_QUEUE_URL, and where SQS is.
func (l *Letters) Env() []string {
	return []string{"DEAD_LETTER_QUEUE_URL=" + l.url + "/123456789012/letters", "AWS_ENDPOINT_URL_SQS=" + l.url}
}

// All returns the letters taken so far, in the order in which they came.
func (l *Letters) All() []deadletter.Letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.taken)
}

// take answers SendMessageBatch
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html).
func (l *Letters) take(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		Entries []struct {
			ID   string `json:"Id"`
			Body string `json:"MessageBody"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return fmt.Errorf("deploytest: request to SQS: %w", err)
	}
	var answer struct{ Successful []map[string]string }
	for _, e := range request.Entries {
		var letter deadletter.Letter
		if err := json.Unmarshal([]byte(e.Body), &letter); err != nil {
			return fmt.Errorf("deploytest: message %q is no letter: %w", e.Body, err)
		}
		l.mu.Lock()
		l.taken = append(l.taken, letter)
		l.mu.Unlock()
		sum := md5.Sum([]byte(e.Body)) // which the SDK checks
		answer.Successful = append(answer.Successful,
			map[string]string{"Id": e.ID, "MessageId": e.ID, "MD5OfMessageBody": hex.EncodeToString(sum[:])})
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	return json.NewEncoder(w).Encode(answer)
}
