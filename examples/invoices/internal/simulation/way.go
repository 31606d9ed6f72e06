package simulation

import (
	"context"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// way is how an event comes to the function.
type way string

const (
	byRule  way = "rule"
	byQueue way = "queue"
)

// number makes one number of an invocation and the way that it came: bus and queue count their own.
func number(w way, invocation int) int {
	if w == byQueue {
		return -invocation
	}
	return invocation
}

// wayOf is the other way round.
func wayOf(number int) (way, int) {
	if number < 0 {
		return byQueue, -number
	}
	return byRule, number
}

type invocationKey struct{}

// begins takes down which invocation is the present one of its way, and lets none crash there. By each way they follow one
// another.
func (s *simulation) begins(p lambdatest.Point, w way) bool {
	if p.Moment == lambdatest.BeforeInvoke {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.current[w] = p.Invocation
	}
	return false
}

// numbered is the function, with the number of its invocation in the context.
func (s *simulation) numbered(w way) lambdatest.Handler {
	handler := s.handler
	return lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		s.mu.Lock()
		invocation := number(w, s.current[w])
		s.mu.Unlock()
		return handler.Invoke(context.WithValue(ctx, invocationKey{}, invocation), payload)
	})
}

// invocationOf returns the number of the invocation that ctx belongs to.
func invocationOf(ctx context.Context) int {
	invocation, _ := ctx.Value(invocationKey{}).(int)
	return invocation
}
