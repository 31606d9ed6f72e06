package idempotency

import "context"

// Wrap returns fn as a function that does its work once for each key: the key function gives the key of an input, and a
// replay returns the stored output. It is Do for a handler of one event, as lambda.Start takes it. An error of the key
// function is returned as it is, and fn does not run. Wrap panics if an argument is nil.
func Wrap[In, Out any](g *Guard, key func(In) (string, error), fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	switch {
	case g == nil:
		panic("idempotency: Wrap: guard is nil")
	case key == nil:
		panic("idempotency: Wrap: key function is nil")
	case fn == nil:
		panic("idempotency: Wrap: function is nil")
	}
	return func(ctx context.Context, in In) (Out, error) {
		k, err := key(in)
		if err != nil {
			var zero Out
			return zero, err
		}
		result, err := Do(ctx, g, k, func(ctx context.Context) (Out, error) { return fn(ctx, in) })
		return result.Value, err
	}
}
