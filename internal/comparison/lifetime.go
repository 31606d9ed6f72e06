package main

import (
	"fmt"
	"os"
	"testing"
)

// lifetime is a testing.TB without a test: what tests start and stop with one, a program starts and stops with this.
// It has the methods that dynamotest and localserver call; the others panic.
type lifetime struct {
	testing.TB
	cleanups []func()
	failed   bool
}

// giveUp is what Fatal panics with.
type giveUp struct{ message string }

func (l *lifetime) Helper()                           {}
func (l *lifetime) Cleanup(f func())                  { l.cleanups = append(l.cleanups, f) }
func (l *lifetime) Fatal(args ...any)                 { panic(giveUp{fmt.Sprint(args...)}) }
func (l *lifetime) Fatalf(format string, args ...any) { panic(giveUp{fmt.Sprintf(format, args...)}) }
func (l *lifetime) Skip(args ...any)                  { l.Fatal(args...) }

func (l *lifetime) Errorf(format string, args ...any) {
	l.failed = true
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (l *lifetime) TempDir() string {
	folder, err := os.MkdirTemp("", "oncekit-comparison-")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// live calls f with a lifetime that ends when f returns, and returns f's error or what Fatal was given.
func live(f func(testing.TB) error) (err error) {
	l := &lifetime{}
	defer func() {
		for i := len(l.cleanups) - 1; i >= 0; i-- {
			l.cleanups[i]()
		}
		if l.failed && err == nil {
			err = fmt.Errorf("comparison: could not clean up")
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			reason, ok := r.(giveUp)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("comparison: %s", reason.message)
		}
	}()
	return f(l)
}
