package dynamotest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// LoseReply passes the request on, and resets the connection instead of sending the answer back.
func LoseReply(x *Exchange) {
	_, _ = x.Forward()
	x.Reset()
}

// Drop resets the connection. The request does not reach the server.
func Drop(x *Exchange) { x.Reset() }

// ServerError answers 500. The request does not reach the server.
func ServerError(x *Exchange) {
	x.Answer(errorReply(http.StatusInternalServerError, "InternalServerError", "The request processing has failed", ""))
}

// DelayReply passes the request on at once and the answer back after d.
func DelayReply(d time.Duration) Fault {
	return func(x *Exchange) {
		reply, err := x.Forward()
		if err != nil {
			x.Reset()
			return
		}
		x.Wait(d)
		x.Answer(reply)
	}
}

// Throttle answers as DynamoDB does for a table whose throughput is exceeded, with these reasons. The request does
// not reach the server.
func Throttle(reasons ...string) Fault {
	const resource = "arn:aws:dynamodb:us-east-1:123456789012:table/throttled"
	list := make([]string, len(reasons))
	for i, reason := range reasons {
		list[i] = fmt.Sprintf(`{"reason":%q,"resource":%q}`, reason, resource)
	}
	return func(x *Exchange) {
		x.Answer(errorReply(http.StatusBadRequest, "ProvisionedThroughputExceededException",
			"The level of configured provisioned throughput for the table was exceeded.",
			`,"ThrottlingReasons":[`+strings.Join(list, ",")+`]`))
	}
}

// Fail answers with an error of this code. The request does not reach the server.
func Fail(code, message string) Fault {
	return func(x *Exchange) { x.Answer(errorReply(http.StatusBadRequest, code, message, "")) }
}

// HideItem passes the request on and takes the item out of an answer that says that a condition failed, as servers do
// that do not know ReturnValuesOnConditionCheckFailure.
func HideItem(x *Exchange) {
	reply, err := x.Forward()
	if err != nil {
		x.Reset()
		return
	}
	if reply.Status == http.StatusBadRequest && bytes.Contains(reply.Body, []byte("ConditionalCheckFailedException")) {
		var body map[string]json.RawMessage
		if err := json.Unmarshal(reply.Body, &body); err != nil {
			panic(fmt.Sprintf("dynamotest: the server's answer is not JSON: %v", err))
		}
		delete(body, "Item")
		reply.Body, _ = json.Marshal(body) // it was JSON before
	}
	x.Answer(reply)
}

func errorReply(status int, code, message, more string) Reply {
	return Reply{Status: status, Body: fmt.Appendf(nil,
		`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q%s}`, code, message, more)}
}
