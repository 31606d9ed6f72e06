package lambdatest_test

import (
	"context"
	"fmt"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// A kit in a few lines: an event is delivered until its invocation has answered. The function crashes after its work is
// done, so the second attempt finds the completion.
func ExampleFunction() {
	f := lambdatest.NewFunction(lambdatest.FunctionOptions{
		Crash: func(p lambdatest.Point) bool { return p.Moment == lambdatest.AfterInvoke && p.Attempt == 1 },
	})
	defer f.Close()

	guard, err := idempotency.New("payments", f.Store(idempotency.NewMemoryStore()))
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		result, err := idempotency.Do(ctx, guard, string(payload), func(ctx context.Context) (struct{}, error) {
			lambdatest.Checkpoint(ctx, "charge") // another point at which the function could crash
			fmt.Println("charge", string(payload))
			return struct{}{}, nil
		})
		fmt.Println("replayed:", result.Replayed)
		return nil, err
	})

	for attempt := 1; ; attempt++ {
		results := make(chan lambdatest.Result)
		e := lambdatest.Event{Payload: []byte("order-1"), RecordIDs: []string{"1"}, Attempt: attempt}
		f.Start(context.Background(), handler, e, func(r lambdatest.Result) { results <- r })
		r := <-results
		fmt.Println(r.Ending)
		if r.Ending == lambdatest.Answered {
			return
		}
	}
	// Output:
	// charge order-1
	// replayed: false
	// crashed
	// replayed: true
	// answered
}
