// Package lifetime lets programs use what is made for tests: servers, proxies and tables that end with a test.
package lifetime

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// lifetime is a testing.TB without a test. It has the methods that dynamotest and localserver call; the others panic.
type lifetime struct {
	testing.TB
	cleanups []func()
	errs     []error
}

// ended is what Fatal panics with.
type ended struct{ error }

func (l *lifetime) Helper()          {}
func (l *lifetime) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

// Fatal keeps an error that is its only argument, so that errors.Is finds it.
func (l *lifetime) Fatal(args ...any) {
	if len(args) == 1 {
		if err, ok := args[0].(error); ok {
			panic(ended{err})
		}
	}
	panic(ended{errors.New(fmt.Sprint(args...))})
}

func (l *lifetime) Fatalf(format string, args ...any) { l.Fatal(fmt.Sprintf(format, args...)) }
func (l *lifetime) Skip(args ...any)                  { l.Fatal(args...) }

func (l *lifetime) TempDir() string {
	folder, err := os.MkdirTemp("", "oncekit-")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func (l *lifetime) Errorf(format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf(format, args...))
}

// Live calls f with a lifetime that ends when f returns. It returns f's error, or what ended f: that a tool is missing,
// for which a test would be skipped. What went wrong besides is joined to it.
func Live(f func(t testing.TB) error) (err error) {
	l := &lifetime{}
	defer func() {
		for i := len(l.cleanups) - 1; i >= 0; i-- {
			l.cleanups[i]()
		}
		err = errors.Join(append([]error{err}, l.errs...)...)
	}()
	defer func() {
		if r := recover(); r != nil {
			reason, ok := r.(ended)
			if !ok {
				panic(r)
			}
			err = reason.error
		}
	}()
	return f(l)
}
