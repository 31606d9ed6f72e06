package deadletter_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/deadletter"
)

// The JSON of SendMessageBatch, see its API reference.
type (
	wireRequest struct {
		QueueURL string `json:"QueueUrl"`
		Entries  []wireEntry
	}
	wireEntry struct {
		ID                     string `json:"Id"`
		MessageBody            string
		MessageGroupID         string `json:"MessageGroupId"`
		MessageDeduplicationID string `json:"MessageDeduplicationId"`
	}
	wireAnswer struct {
		Successful []map[string]string `json:",omitempty"`
		Failed     []map[string]any    `json:",omitempty"`
	}
)

// The sink with the SDK's client: what goes over the wire, and what comes back.
func TestSDK(t *testing.T) {
	const denied = `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`
	var mu sync.Mutex
	var target string
	var request wireRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		target, request = r.Header.Get("X-Amz-Target"), wireRequest{}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		var answer wireAnswer
		for _, e := range request.Entries {
			var l deadletter.Letter
			if err := json.Unmarshal([]byte(e.MessageBody), &l); err != nil {
				t.Error(err)
			}
			sum := md5.Sum([]byte(e.MessageBody)) // which the SDK checks
			switch l.ID {
			case "gone":
				w.WriteHeader(http.StatusBadRequest)
				if _, err := w.Write([]byte(denied)); err != nil {
					t.Error(err)
				}
				return
			case "refused":
				answer.Failed = append(answer.Failed, map[string]any{"Id": e.ID, "Code": "InternalError", "Message": "later", "SenderFault": false})
			default:
				answer.Successful = append(answer.Successful, map[string]string{"Id": e.ID, "MessageId": "x", "MD5OfMessageBody": hex.EncodeToString(sum[:])})
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client := sqs.New(sqs.Options{
		Region: "eu-central-1", BaseEndpoint: &server.URL, HTTPClient: server.Client(), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	})
	queue := server.URL + "/123456789012/orders-dead.fifo"
	s := newSink(t, client, queue)

	r := &batch.Record{ID: "m1", Lane: "g", Source: "orders", Value: value("{\"body\":\"<\u2028\uFFFF\\u0000\xff>\"}")}
	if err := s.DeadLetter(t.Context(), r, errBoom); err != nil {
		t.Fatal(err)
	}
	if want := "AmazonSQS.SendMessageBatch"; target != want {
		t.Errorf("target is %q, want %q", target, want)
	}
	if len(request.Entries) != 1 {
		t.Fatalf("%d entries, want 1", len(request.Entries))
	}
	entry := request.Entries[0]
	var letter deadletter.Letter
	if err := json.Unmarshal([]byte(entry.MessageBody), &letter); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("{\"body\":\"<\u2028\\uffff\\u0000\uFFFD>\"}", string(letter.Record)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if len(entry.MessageGroupID) != 64 || len(entry.MessageDeduplicationID) != 64 || request.QueueURL != queue {
		t.Errorf("request is %+v, want a group and a deduplication id of 64 characters, and the queue's URL", request)
	}

	refusal, ok := errors.AsType[*deadletter.EntryError](s.DeadLetter(t.Context(), record("refused"), errBoom))
	if want := (&deadletter.EntryError{Code: "InternalError", Message: "later"}); !ok || *refusal != *want {
		t.Errorf("error is %+v, want %+v", refusal, want)
	}
	err := s.DeadLetter(t.Context(), record("gone"), errBoom)
	if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != "QueueDoesNotExist" {
		t.Errorf("error is %v, want the SDK's QueueDoesNotExist", err)
	}
}
