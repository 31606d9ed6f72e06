//go:build unix

package rietest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ErrTimeout means that the function had not answered at its timeout, and that its process was killed. The next event
// starts a new one.
var ErrTimeout = errors.New("rietest: function timed out")

// FunctionError is what a function answered instead of a response: its handler returned an error or panicked, or its
// process ended.
type FunctionError struct {
	Type    string // the Go type's name, such as "errorString", or Lambda's own, such as "Runtime.ExitError"
	Message string
	// Exited is whether the function's process ended with it, as after a panic. The next event starts a new one.
	Exited bool
}

// Error names the type and the message.
func (e *FunctionError) Error() string {
	return fmt.Sprintf("rietest: function error %s: %s", e.Type, e.Message)
}

// Post hands the event to the function and returns its response. The error is ErrTimeout, a *FunctionError, or says
// that the emulator could not be reached. The function works on one event at a time: Post waits for its turn.
//
// The emulator does not mark errors as Lambda does with the header X-Amz-Function-Error: what a handler returned as an
// error, and a timeout, come with status 200 like a response, and only the body tells them apart. A response that is an
// object with the members errorType and errorMessage is therefore taken for an error.
func (f *Function) Post(ctx context.Context, event []byte) ([]byte, error) {
	status, body, err := f.post(ctx, event)
	if err != nil {
		return nil, fmt.Errorf("rietest: post the event: %w", err)
	}
	return answer(status, body)
}

// answer tells from the emulator's answer what the function did.
func answer(status int, body []byte) ([]byte, error) {
	if status == http.StatusOK && bytes.HasPrefix(body, []byte("Task timed out after ")) {
		return nil, ErrTimeout
	}
	if status == http.StatusOK || status == http.StatusBadGateway {
		var failure struct {
			Type    *string `json:"errorType"`
			Message *string `json:"errorMessage"`
		}
		if json.Unmarshal(body, &failure) == nil && failure.Type != nil && failure.Message != nil {
			return nil, &FunctionError{
				Type:    *failure.Type,
				Message: *failure.Message,
				Exited:  status == http.StatusBadGateway,
			}
		}
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("rietest: the emulator answered with status %d: %q", status, body)
	}
	return body, nil
}
