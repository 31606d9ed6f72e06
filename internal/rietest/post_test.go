//go:build unix

package rietest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/internal/localserver"
)

// response is what testdata/function answers.
type response struct {
	Do        string `json:"do"`
	Process   int    `json:"process"`
	Remaining int64  `json:"remaining"`
	Value     string `json:"value"`
}

func startFunction(t *testing.T) *Function {
	t.Helper()
	return Start(t, Build(t, "./testdata/function"), func(o *Options) {
		o.Timeout = time.Second
		o.Env = []string{"TABLE=orders", "AWS_ACCESS_KEY_ID=test-only"}
	})
}

func post(t *testing.T, f *Function, event string) (response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	body, err := f.Post(ctx, []byte(event))
	if err != nil {
		return response{}, err
	}
	var r response
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("response %q: %v", body, err)
	}
	return r, nil
}

// mustEcho posts an event that works and returns the process that answered it.
func mustEcho(t *testing.T, f *Function) int {
	t.Helper()
	r, err := post(t, f, `{"do":"echo","name":"TABLE"}`)
	if err != nil {
		t.Fatal(err)
	}
	if r.Do != "echo" || r.Value != "orders" || r.Remaining <= 0 {
		t.Errorf("echo answered %+v; want do echo, value orders, and a deadline ahead", r)
	}
	return r.Process
}

// TestPost walks one function through what can become of an event, and shows after each that the next event works,
// in the same process or in a new one.
func TestPost(t *testing.T) {
	f := startFunction(t)
	process := mustEcho(t, f)
	if again := mustEcho(t, f); again != process {
		t.Errorf("second event: process %d, want %d again", again, process)
	}

	for _, test := range []struct {
		do   string
		want error
		kept bool // whether the process lives on
	}{
		{do: "fail", want: &FunctionError{Type: "errorString", Message: "the queue is closed"}, kept: true},
		{do: "panic", want: &FunctionError{Type: "string", Message: "no such order", Exited: true}},
		{do: "hang", want: ErrTimeout},
	} {
		_, err := post(t, f, `{"do":"`+test.do+`"}`)
		var got, want *FunctionError
		if errors.As(test.want, &want) && errors.As(err, &got) {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.do, diff)
			}
		} else if !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", test.do, err, test.want)
		}
		after := mustEcho(t, f)
		if kept := after == process; kept != test.kept {
			t.Errorf("%s: process %d before, %d after; want the same: %t", test.do, process, after, test.kept)
		}
		process = after
	}

	_, err := post(t, f, `{"do":"exit"}`)
	var failure *FunctionError
	if !errors.As(err, &failure) || failure.Type != "Runtime.ExitError" || !failure.Exited ||
		!strings.Contains(failure.Message, "exit status 3") {
		t.Errorf("exit: error %v, want Runtime.ExitError with exit status 3", err)
	}
	mustEcho(t, f)

	if logs := f.Logs(); !strings.Contains(logs, "the queue is closed") {
		t.Errorf("logs do not have the function's output:\n%s", logs)
	}
}

func TestFunctionSeesNothingOfTheTestsEnvironment(t *testing.T) {
	t.Setenv("AWS_SESSION_TOKEN", "someone's")
	f := startFunction(t)
	for name, want := range map[string]string{"AWS_SESSION_TOKEN": "", "AWS_ACCESS_KEY_ID": "test-only"} {
		r, err := post(t, f, `{"do":"env","name":"`+name+`"}`)
		if err != nil {
			t.Fatal(err)
		}
		if r.Value != want {
			t.Errorf("the function's %s is %q, want %q", name, r.Value, want)
		}
	}
}

func TestPostWaitsForItsTurn(t *testing.T) {
	f := startFunction(t)
	process := mustEcho(t, f)
	hung := hang(t, f)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("client gone")
	cancel(gone)
	if _, err := f.Post(ctx, []byte(`{"do":"echo"}`)); !errors.Is(err, gone) {
		t.Errorf("event whose context ends before its turn: error %v, want %v", err, gone)
	}
	if next := mustEcho(t, f); next == process {
		t.Errorf("the event after one that hangs was answered by the same process %d", process)
	}
	if err := <-hung; !errors.Is(err, ErrTimeout) {
		t.Errorf("event that hangs: error %v, want %v", err, ErrTimeout)
	}
}

// TestStopEndsBothProcesses stops the emulator while the function hangs: as it is, and when it has crashed and left the
// function behind.
func TestStopEndsBothProcesses(t *testing.T) {
	emulator, bootstrap := localserver.Tool(t, "bin/aws-lambda-rie"), Build(t, "./testdata/function")
	for _, test := range []struct {
		name   string
		before func(t *testing.T, f *Function)
	}{
		{name: "alive", before: func(*testing.T, *Function) {}},
		{name: "crashed", before: func(t *testing.T, f *Function) {
			if runtime.GOOS != "linux" {
				t.Log("the function can outlive a crash of the emulator here")
				return
			}
			if err := f.cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			<-f.done
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := start(emulator, bootstrap, Options{Timeout: time.Minute, Env: []string{"TABLE=orders"}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.stop() }()
			function := mustEcho(t, f)
			hung := hang(t, f)
			test.before(t, f)
			if err := f.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			<-hung
			for name, pid := range map[string]int{"emulator": f.cmd.Process.Pid, "function": function} {
				await(t, name+" to end", func() bool { return !running(pid) })
			}
		})
	}
}

// hang posts an event that the function never answers, and returns when the function has it.
func hang(t *testing.T, f *Function) <-chan error {
	t.Helper()
	events := strings.Count(f.Logs(), "INVOKE START")
	ended := make(chan error, 1)
	go func() {
		_, err := f.Post(context.Background(), []byte(`{"do":"hang"}`))
		ended <- err
	}()
	await(t, "the event to start", func() bool { return strings.Count(f.Logs(), "INVOKE START") > events })
	return ended
}

func TestStartSaysWhyItFailed(t *testing.T) {
	notThere := filepath.Join(t.TempDir(), "aws-lambda-rie")
	if _, err := start(notThere, "bootstrap", Options{Timeout: time.Second}); err == nil || !strings.Contains(err.Error(), notThere) {
		t.Errorf("emulator that does not exist: error %v, want one that names it", err)
	}
	endsAtOnce := filepath.Join(t.TempDir(), "ends-at-once")
	if err := os.WriteFile(endsAtOnce, []byte("#!/bin/sh\necho address in use\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := start(endsAtOnce, "bootstrap", Options{Timeout: time.Second})
	if err == nil || !strings.Contains(err.Error(), "ended before it listened") || !strings.Contains(err.Error(), "address in use") {
		t.Errorf("emulator that ends at once: error %v, want one that says so and has its output", err)
	}
}

func TestAnswer(t *testing.T) {
	for _, test := range []struct {
		name     string
		status   int
		body     string
		response string
		err      string
	}{
		{name: "response", status: 200, body: `{"batchItemFailures":[]}`, response: `{"batchItemFailures":[]}`},
		{name: "string response", status: 200, body: `"Task timed out after "`, response: `"Task timed out after "`},
		{name: "null", status: 200, body: `null`, response: `null`},
		{name: "message alone", status: 200, body: `{"errorMessage":"m"}`, response: `{"errorMessage":"m"}`},
		{name: "error", status: 200, body: `{"errorMessage":"m","errorType":"t"}`, err: "rietest: function error t: m"},
		{name: "timeout", status: 200, body: "Task timed out after 2.00 seconds", err: ErrTimeout.Error()},
		{name: "busy", status: 400, body: "", err: `rietest: the emulator answered with status 400: ""`},
		{name: "gateway", status: 502, body: "", err: `rietest: the emulator answered with status 502: ""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			response, err := answer(test.status, []byte(test.body))
			var message string
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff([]string{test.response, test.err}, []string{string(response), message}); diff != "" {
				t.Errorf("response and error (-want +got):\n%s", diff)
			}
		})
	}
}

// await polls, since another process cannot be waited for in a bubble.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

// running reports whether the process exists and has not ended. One that nobody has waited for yet has ended.
func running(pid int) bool {
	if stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err == nil {
		_, state, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(state, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}
