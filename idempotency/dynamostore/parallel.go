package dynamostore

import (
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// parallel calls do with the numbers below n, up to limit at a time, and returns when all have returned. A client that
// panics does so in the goroutine of the caller, who can recover it, and not in one that nobody watches. One that ends its
// goroutine panics there too: it has answered nothing, which must not look like an answer.
func parallel(n, limit int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var group errgroup.Group
	group.SetLimit(limit)
	var once sync.Once
	var panicked any
	for i := range n {
		group.Go(func() error {
			returned := false
			defer func() {
				if returned {
					return
				}
				v := recover()
				if v == nil {
					v = "runtime.Goexit was called"
				}
				once.Do(func() { panicked = fmt.Sprintf("%v\n\n%s", v, debug.Stack()) })
			}()
			do(i)
			returned = true
			return nil
		})
	}
	_ = group.Wait()
	if panicked != nil {
		panic(panicked)
	}
}
