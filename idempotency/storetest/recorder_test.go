package storetest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// recorder is a testing.TB that keeps a failure to itself.
type recorder struct {
	testing.TB // for everything that has nothing to do with failing

	mu     sync.Mutex
	failed bool
	logged []string
}

// record runs a check on a goroutine of its own, since FailNow ends the one that calls it, and returns what it reported.
func record(t testing.TB, run func(t testing.TB)) *recorder {
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(r)
	}()
	<-ended
	return r
}

func (r *recorder) report(failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.logged = append(r.logged, text)
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Fail()                             { r.report(true, "Fail") }
func (r *recorder) Log(args ...any)                   { r.report(false, fmt.Sprintln(args...)) }
func (r *recorder) Logf(format string, args ...any)   { r.report(false, fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.report(true, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.report(true, fmt.Sprintf(format, args...)) }

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
