// Command function is the Lambda function that the tests of package rietest run under the emulator. Its event says what
// it does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

// started tells one process from the next.
var started = time.Now()

type event struct {
	Do string `json:"do"` // echo, fail, panic, exit, hang or env
	// Name is the variable that env reads.
	Name string `json:"name"`
}

type answer struct {
	Do        string `json:"do"`
	Process   int    `json:"process"`
	Started   int64  `json:"started"`
	Remaining int64  `json:"remaining"` // milliseconds until the deadline
	Value     string `json:"value"`
}

func handle(ctx context.Context, raw json.RawMessage) (answer, error) {
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return answer{}, err
	}
	deadline, _ := ctx.Deadline()
	a := answer{
		Do:        e.Do,
		Process:   os.Getpid(),
		Started:   started.UnixNano(),
		Remaining: time.Until(deadline).Milliseconds(),
		Value:     os.Getenv(e.Name),
	}
	switch e.Do {
	case "fail":
		return answer{}, errors.New("the queue is closed")
	case "panic":
		panic("no such order")
	case "exit":
		os.Exit(3)
	case "hang":
		select {} // past the deadline, whatever the context says
	}
	return a, nil
}

func main() { lambda.Start(handle) }
