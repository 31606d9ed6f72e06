package shardtest_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncekit/oncekit/sources/shardtest"
)

// Observe may be a test's code, which ends its goroutine with t.Fatal.
func TestGoexitInObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kit, err := shardtest.New(shardtest.Config[string]{
			Kit: "kit", Observe: func(shardtest.Delivery[string]) { runtime.Goexit() },
		}, shardtest.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		s := stream{t: t, kit: kit, Stream: kit.Stream}
		s.open("s")
		s.put("s", "a b c")
		start := time.Now()
		s.drain(succeed)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("Drain and Close took %v, want no time", took)
		}
		if got := s.Stats(); got.Done != 3 {
			t.Errorf("stats are %v, want 3 records done", got)
		}
	})
}
