package eventbridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/sources/eventbridge"
)

// Arrays that fail, overlap and come again, until all is done: every order is placed once, no two of a group at once or out
// of the array's order, and an invocation fails exactly if it left something undone.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "events")
		groups := rapid.SliceOfN(rapid.SampledFrom([]string{"", "g", "h"}), n, n).Draw(rt, "groups")
		failures := rapid.SliceOfN(rapid.IntRange(0, 3), n, n).Draw(rt, "failures of each")
		millis := rapid.SliceOfN(rapid.IntRange(0, 3000), n, n).Draw(rt, "milliseconds of each")
		workers := rapid.IntRange(1, 4).Draw(rt, "concurrency")
		gaps := rapid.SliceOfN(rapid.IntRange(0, 5), 20, 20).Draw(rt, "seconds between deliveries")
		events := make([]string, n)
		for i := range events {
			events[i] = placed(i, fmt.Sprint(i))
			if groups[i] != "" {
				events[i] = withMetadata(i, events[i], groups[i])
			}
		}
		payload := array(events...)
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			done, running, left := make([]int, n), map[string]bool{}, append([]int{}, failures...)
			handle := func(_ context.Context, e *eventbridge.Event[order]) error {
				i, group := e.Detail.Amount, e.Group()
				mu.Lock()
				defer mu.Unlock()
				for earlier := range i {
					if group != "" && groups[earlier] == group && done[earlier] == 0 {
						rt.Errorf("event %d started before event %d of its group was done", i, earlier)
					}
				}
				if group != "" && running[group] {
					rt.Errorf("event %d started while another of its group ran", i)
				}
				running[group] = true
				mu.Unlock()
				time.Sleep(time.Duration(millis[i]) * time.Millisecond)
				mu.Lock()
				running[group] = false
				if left[i] > 0 {
					left[i]--
					return errors.New("not yet")
				}
				done[i]++
				return nil
			}
			h := newHandler(rt, handle, guarded(rt), concurrency(workers))
			var deliveries sync.WaitGroup
			for _, gap := range gaps {
				time.Sleep(time.Duration(gap) * time.Second)
				deliveries.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					_, err := h.Invoke(ctx, payload)
					mu.Lock()
					defer mu.Unlock()
					undone := 0
					for i := range done {
						if done[i] == 0 {
							undone++
						}
					}
					if err == nil && undone > 0 {
						rt.Errorf("no error, but %d events are not done", undone)
					}
					if err != nil && !strings.Contains(err.Error(), "not yet") {
						rt.Errorf("error is %v, want that of a handler", err)
					}
				})
			}
			deliveries.Wait()
			for range 4 * n { // each of which gets one event further at least
				if _, err := h.Invoke(t.Context(), payload); err == nil {
					break
				}
			}
			for i := range done {
				if done[i] != 1 {
					rt.Errorf("event %d was done %d times, want once", i, done[i])
				}
			}
		})
	})
}
