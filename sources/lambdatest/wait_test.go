package lambdatest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

func TestWait(t *testing.T) {
	at := func(seconds int) time.Time { return time.Now().Add(time.Duration(seconds) * time.Second) }
	for _, test := range []struct {
		name                string
		done, changed, next int // after so many seconds, 0 never
		want                bool
		took                time.Duration
	}{
		{"done", 1, 2, 3, true, time.Second},
		{"changed", 2, 1, 3, false, time.Second},
		{"next", 2, 3, 1, false, time.Second},
		{"no next", 0, 2, 0, false, 2 * time.Second},
		{"next has passed", 1, 1, -1, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closed := func(seconds int) <-chan struct{} {
					c := make(chan struct{})
					if seconds > 0 {
						time.AfterFunc(time.Until(at(seconds)), func() { close(c) })
					}
					return c
				}
				var next time.Time
				if test.next != 0 {
					next = at(test.next)
				}
				start := time.Now()
				got := lambdatest.Wait(closed(test.done), closed(test.changed), next)
				if took := time.Since(start); got != test.want || took != test.took {
					t.Errorf("Wait returned %t after %v, want %t after %v", got, took, test.want, test.took)
				}
			})
		})
	}
}
