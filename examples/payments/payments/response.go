package payments

import (
	"context"
	"encoding/json"
	"net/http"
)

// ReplayedHeader marks a response that was stored when the same request came for the first time.
const ReplayedHeader = "Idempotent-Replayed"

// Receipt is the body of a response with status 201.
type Receipt struct {
	Receipt  string `json:"receipt"`
	Payment  string `json:"payment,omitempty"` // the ID, if the request had one
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

func created(p Payment, receipt string) Response {
	return respond(http.StatusCreated, "application/json",
		Receipt{Receipt: receipt, Payment: p.ID, Amount: p.Amount, Currency: p.Currency})
}

// Problem is the body of any other response. See https://www.rfc-editor.org/rfc/rfc9457.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func problem(status int, title, detail string) Response {
	return respond(status, "application/problem+json", Problem{title, status, detail})
}

func respond(status int, contentType string, body any) Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // bodies are made of text and numbers
	}
	return Response{StatusCode: status, Headers: map[string]string{"Content-Type": contentType}, Body: string(text)}
}

// again asks the client to send its request again in a second. Where a request is in progress its lease ends later than
// that, but while its worker lives it is done sooner.
func again(r Response) Response { return withHeader(r, "Retry-After", "1") }

func markReplayed(_ context.Context, r Response) (Response, error) {
	return withHeader(r, ReplayedHeader, "true"), nil
}

func withHeader(r Response, name, value string) Response {
	if r.Headers == nil {
		r.Headers = make(map[string]string)
	}
	r.Headers[name] = value
	return r
}
