package lambdatest

import "context"

// Handler is what is tested. It is the same as lambda.Handler of aws-lambda-go, so lambda.NewHandler makes one of an
// ordinary handler function.
//
// One made by lambda.NewHandler must not be invoked twice at a time, which a kit does where its Concurrency is above 1:
// the bytes that it returns are a buffer that the next invocation uses.
type Handler interface {
	// Invoke handles the event in payload, which is valid until Invoke returns, and returns the answer.
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, payload []byte) ([]byte, error)

// Invoke calls f.
func (f HandlerFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}
