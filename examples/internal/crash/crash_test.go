package crash

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// never is a point that no lane of these tests gets to.
const never = 100

func newCrashes(fate Fate, concurrency, stop int) *Crashes {
	return New(Options{
		Fate: func(int) Fate { return fate }, Stop: func(int, string) int { return stop },
		Concurrency: concurrency, Timeout: time.Minute,
	})
}

// TestCrashComesWhenNothingMoves lets two lanes stop in a batch of three. Two have two records.
func TestCrashComesWhenNothingMoves(t *testing.T) {
	batch := []string{"a", "a", "b", "c", "c"}
	for _, test := range []struct {
		name        string
		concurrency int
		then        func(c *Crashes) // what happens when a and b have stopped; nil: nothing
		crash       bool
	}{
		{name: "c still moves", concurrency: 10},
		{name: "one record of c finishes", concurrency: 10, then: func(c *Crashes) { c.Finishes("c") }},
		{name: "c finishes", concurrency: 10, then: func(c *Crashes) { c.Finishes("c"); c.Finishes("c") }, crash: true},
		{name: "c hangs", concurrency: 10, then: func(c *Crashes) { c.Hangs("c") }, crash: true},
		{name: "there is no worker for c", concurrency: 2, crash: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrashes(Dies, test.concurrency, 3)
				if c.At(lambdatest.Point{Moment: lambdatest.BeforeInvoke, Invocation: 1}, "", batch) {
					t.Fatal("it crashes before it begins")
				}
				stopped := make(chan bool, 2)
				for _, lane := range []string{"a", "b"} {
					go func() {
						for !c.At(lambdatest.Point{Moment: lambdatest.AtCheckpoint, Invocation: 1}, lane, batch) {
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
					t.Errorf("%d of the two lanes were told of a crash, want %d", len(stopped), want)
				}
				time.Sleep(time.Minute) // then they are told in any case
				<-stopped
				<-stopped
			})
		})
	}
}

// TestStop counts the points that a lane passes before it stops.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashes(Dies, 1, 3)
		c.At(lambdatest.Point{Moment: lambdatest.BeforeInvoke, Invocation: 1}, "", []string{"a"})
		points := 1
		for ; !c.At(lambdatest.Point{Moment: lambdatest.AtCheckpoint, Invocation: 1}, "a", nil); points++ {
			if points == never {
				break
			}
		}
		if points != 3 {
			t.Errorf("it stops at point %d, want 3", points)
		}
		if !c.At(lambdatest.Point{Moment: lambdatest.AfterInvoke, Invocation: 1}, "", nil) {
			t.Error("its answer arrives")
		}
	})
}

// TestOthersDoNotCrash asks about invocations that are to live, and about handlers left over from earlier ones.
func TestOthersDoNotCrash(t *testing.T) {
	for _, test := range []struct {
		name       string
		fate       Fate
		invocation int
		moment     lambdatest.Moment
		lane       string
	}{
		{"lives", Lives, 2, lambdatest.AtCheckpoint, "a"},
		{"lives and answers", Lives, 2, lambdatest.AfterInvoke, ""},
		{"earlier invocation", Dies, 1, lambdatest.AtCheckpoint, "a"},
		{"earlier invocation answers", Dies, 1, lambdatest.AfterInvoke, ""},
		{"not in the batch", Dies, 2, lambdatest.StoreCall, "b"},
	} {
		c := newCrashes(test.fate, 1, 1)
		c.At(lambdatest.Point{Moment: lambdatest.BeforeInvoke, Invocation: 2}, "", []string{"a"})
		for range never {
			if c.At(lambdatest.Point{Moment: test.moment, Invocation: test.invocation}, test.lane, nil) {
				t.Errorf("%s: it crashes", test.name)
				break
			}
		}
		if got := c.Current(); got != 2 {
			t.Errorf("%s: the present invocation is %d, want 2", test.name, got)
		}
	}
	c := newCrashes(NeverBegins, 1, 1)
	if !c.At(lambdatest.Point{Moment: lambdatest.BeforeInvoke, Invocation: 1}, "", []string{"a"}) {
		t.Error("an invocation that is never to begin begins")
	}
}
