//go:build unix

package main

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/deadletter"
	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/examples/internal/deploytest"
	"github.com/oncekit/oncekit/internal/rietest"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
)

// TestLambda delivers a batch with a poison click to the function, under the Lambda emulator and with a table on a
// DynamoDB-compatible server, as a shard does that stands still: until the poison is given up. Then all of it comes again.
func TestLambda(t *testing.T) {
	queue := newQueue(t)
	function := deploytest.Start(t, rietest.Build(t, "./lambda"), 30*time.Second,
		"DEAD_LETTER_QUEUE_URL="+queue.URL+"/123456789012/clicks-dead", "AWS_ENDPOINT_URL_SQS="+queue.URL)
	event := batch(t,
		[]site.Click{{ID: "1", Visitor: "ada", Page: "/"}, {ID: "2", Visitor: "bob", Page: "/"}},
		[]site.Click{{ID: "3", Visitor: "ada", Page: site.PageBroken}, {ID: "4", Visitor: "ada", Page: "/cart"}, {ID: "5", Visitor: "bob", Page: "/help"}},
		[]site.Click{{ID: "6", Visitor: "bob", Page: "/"}},
	)
	attempts := functionsMaxAttempts(t)
	for attempt := 1; attempt < attempts; attempt++ {
		rest := events.KinesisEvent{Records: event.Records[1:]}
		if attempt == 1 {
			rest = event
		}
		post(t, function, rest, event.Records[1].Kinesis.SequenceNumber)
	}
	appended := map[string]int{"1": 1, "2": 1, "5": 1, "6": 1}
	if diff := cmp.Diff(appended, logged(t, function)); diff != "" {
		t.Errorf("appended while the poison is in the way (-want +got):\n%s", diff)
	}
	appended["4"] = 1
	for range 2 { // given up, and delivered again
		post(t, function, event, "")
		if diff := cmp.Diff(appended, logged(t, function)); diff != "" {
			t.Errorf("appended (-want +got):\n%s", diff)
		}
	}
	letters := queue.letters()
	if len(letters) != 1 {
		t.Fatalf("letters are %+v, want one", letters)
	}
	want := deadletter.Letter{
		Version: deadletter.Version, ID: event.Records[1].EventID + "#0", Attempts: attempts, Error: site.ErrBroken.Error(),
		Source: event.Records[1].EventSourceArn,
		Key:    letters[0].Key, Time: letters[0].Time, Record: letters[0].Record,
	}
	if diff := cmp.Diff(want, letters[0]); diff != "" {
		t.Errorf("letter (-want +got):\n%s", diff)
	}
}

// batch returns the event of aggregates of these clicks, and of those that are alone as they are.
func batch(t *testing.T, records ...[]site.Click) (event events.KinesisEvent) {
	t.Helper()
	stream, err := kinesistest.NewStream("clicks")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for _, clicks := range records {
		event.Records = append(event.Records, put(t, stream, clicks))
	}
	return event
}

// post hands an event to the function and checks that it reports the record with this sequence number, or none.
func post(t *testing.T, function *rietest.Function, event events.KinesisEvent, failed string) {
	t.Helper()
	want := `{"batchItemFailures":[]}`
	if failed != "" {
		want = fmt.Sprintf(`{"batchItemFailures":[{"itemIdentifier":%q}]}`, failed)
	}
	got, err := function.Post(t.Context(), kinesistest.Payload(event))
	if string(got) != want || err != nil {
		t.Fatalf("answer is %s, error %v; want %s", got, err, want)
	}
}

// logged returns how often the function has appended each click up to now.
func logged(t *testing.T, function *rietest.Function) map[string]int {
	t.Helper()
	lasts++
	last := fmt.Sprint("last-", lasts) // one more click is appended, to wait for
	// The same place in the stream as another click's would be a redelivery, so it is a click of another stream.
	event := batch(t, []site.Click{{ID: last, Visitor: "last", Page: "/"}})
	event.Records[0].EventSourceArn += "-" + last
	post(t, function, event, "")
	return deploytest.Logged(t, function, "appended click=", last, "last-")
}

var lasts int

// queue is a server that takes letters as SQS does.
type queue struct {
	*httptest.Server
	mu  sync.Mutex
	all []deadletter.Letter
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	q := &queue{}
	q.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := q.take(w, r); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(q.Close)
	return q
}

// take answers SendMessageBatch.
// See https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
func (q *queue) take(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		Entries []struct{ Id, MessageBody string } //lint:ignore ST1003 as it stands in the request
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return err
	}
	var answer struct{ Successful []map[string]string }
	for _, e := range request.Entries {
		var l deadletter.Letter
		if err := json.Unmarshal([]byte(e.MessageBody), &l); err != nil {
			return err
		}
		q.mu.Lock()
		q.all = append(q.all, l)
		q.mu.Unlock()
		sum := md5.Sum([]byte(e.MessageBody)) // which the SDK checks
		answer.Successful = append(answer.Successful,
			map[string]string{"Id": e.Id, "MessageId": e.Id, "MD5OfMessageBody": hex.EncodeToString(sum[:])})
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	return json.NewEncoder(w).Encode(answer)
}

func (q *queue) letters() []deadletter.Letter {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all
}
