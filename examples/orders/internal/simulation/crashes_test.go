package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// TestCrashComesWhenNothingMoves lets two orders stop in a batch of three. Two are delivered twice.
func TestCrashComesWhenNothingMoves(t *testing.T) {
	batch := []string{"a", "a", "b", "c", "c"}
	for _, test := range []struct {
		name        string
		concurrency int
		then        func(c *crashes) // what happens when a and b have stopped; nil: nothing
		crash       bool
	}{
		{name: "c still moves", concurrency: 10},
		{name: "one copy of c finishes", concurrency: 10, then: func(c *crashes) { c.finishes("c") }},
		{name: "c finishes", concurrency: 10, then: func(c *crashes) { c.finishes("c"); c.finishes("c") }, crash: true},
		{name: "c hangs", concurrency: 10, then: func(c *crashes) { c.hangs("c") }, crash: true},
		{name: "there is no worker for c", concurrency: 2, crash: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &crashes{draw: 1, concurrency: test.concurrency, timeout: time.Minute}
				c.begin(1, batch)
				c.doomed = true
				stopped := make(chan bool, 2)
				for _, id := range []string{"a", "b"} {
					go func() {
						for !c.at(sqstest.Point{Moment: sqstest.AtCheckpoint, Name: "pass " + id, Invocation: 1}, nil) {
						}
						stopped <- true
					}()
				}
				synctest.Wait()
				if test.then != nil {
					test.then(c)
				}
				synctest.Wait()
				want := 0
				if test.crash {
					want = 2
				}
				if len(stopped) != want {
					t.Errorf("%d of the two orders were told of a crash, want %d", len(stopped), want)
				}
				time.Sleep(time.Minute) // then they are told in any case
				<-stopped
				<-stopped
			})
		})
	}
}

// TestOthersDoNotCrash asks about invocations that are to live, and about handlers left over from earlier ones.
func TestOthersDoNotCrash(t *testing.T) {
	c := &crashes{draw: 1, concurrency: 1, timeout: time.Minute}
	c.begin(2, []string{"a"})
	for _, test := range []struct {
		name       string
		doomed     bool
		invocation int
		point      sqstest.Point
	}{
		{"not doomed", false, 2, sqstest.Point{Moment: sqstest.AtCheckpoint, Name: "pass a"}},
		{"earlier invocation", true, 1, sqstest.Point{Moment: sqstest.AtCheckpoint, Name: "pass a"}},
		{"earlier invocation answers", true, 1, sqstest.Point{Moment: sqstest.AfterInvoke}},
		{"not in the batch", true, 2, sqstest.Point{Moment: sqstest.StoreCall, Name: "Claim", Key: "orders#b"}},
	} {
		c.doomed = test.doomed
		test.point.Invocation = test.invocation
		for range 2 * points {
			if c.at(test.point, nil) {
				t.Errorf("%s: it crashes", test.name)
				break
			}
		}
	}
}
