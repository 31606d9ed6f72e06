package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// A customer who presses the button twice pays once, and sees the same receipt.
func ExampleDo() {
	guard, err := idempotency.New("payments", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	charge := func(context.Context) (string, error) {
		fmt.Println("charging the card")
		return "receipt 1", nil
	}
	for range 2 {
		result, err := idempotency.Do(context.Background(), guard, "order-1", charge)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s, replayed: %t\n", result.Value, result.Replayed)
	}
	// Output:
	// charging the card
	// receipt 1, replayed: false
	// receipt 1, replayed: true
}

// A client that reuses a key for another order is told so, and does not get the first order's receipt. What is the same
// payload is for the caller to say.
func ExampleDo_fingerprint() {
	guard, err := idempotency.New("payments", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	for _, amount := range []string{"10 EUR", "10 EUR", "900 EUR"} {
		result, err := idempotency.Do(context.Background(), guard, "idempotency-key-from-the-client",
			func(context.Context) (string, error) { return "paid " + amount, nil },
			func(o *idempotency.CallOptions) { o.Fingerprint = amount })
		if errors.Is(err, idempotency.ErrFingerprintMismatch) {
			fmt.Println(amount, "is another payment")
			continue
		}
		fmt.Println(result.Value)
	}
	// Output:
	// paid 10 EUR
	// paid 10 EUR
	// 900 EUR is another payment
}

// A handler of one event, as lambda.Start takes it: an event that is delivered again is not handled again.
func ExampleWrap() {
	type Order struct{ ID string }

	guard, err := idempotency.New("orders", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	handle := idempotency.Wrap(guard,
		func(o Order) (string, error) { return o.ID, nil },
		func(_ context.Context, o Order) (string, error) {
			fmt.Println("shipping", o.ID)
			return "tracking number of " + o.ID, nil
		})

	// lambda.Start(handle)
	for range 2 {
		tracking, err := handle(context.Background(), Order{ID: "order-1"})
		fmt.Println(tracking, err)
	}
	// Output:
	// shipping order-1
	// tracking number of order-1 <nil>
	// tracking number of order-1 <nil>
}

// Work can see which attempt it is and how long its claim is good for, for instance to hand them to a service that it
// calls.
func ExampleFromContext() {
	guard, err := idempotency.New("orders", idempotency.NewMemoryStore(), func(o *idempotency.Options) {
		o.CountAttempts = true
		o.Lease = 30 * time.Second
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		_, err := idempotency.Do(context.Background(), guard, "order-1", func(ctx context.Context) (struct{}, error) {
			claim, _ := idempotency.FromContext(ctx)
			fmt.Printf("%s, attempt %d, time for a call: %t\n", claim.Key, claim.Attempt, claim.LeaseLeft() > 10*time.Second)
			if claim.Attempt == 1 {
				return struct{}{}, errors.New("warehouse is closed")
			}
			return struct{}{}, nil
		})
		fmt.Println(err)
	}
	// Output:
	// order-1, attempt 1, time for a call: true
	// warehouse is closed
	// order-1, attempt 2, time for a call: true
	// <nil>
}

// A key of several parts. Parts that contain the separator make no other tuple's key.
func ExampleJoinKey() {
	fmt.Println(idempotency.JoinKey("tenant-7", "order-1"))
	fmt.Println(idempotency.JoinKey("tenant-7#order", "1"))
	fmt.Printf("%q\n", idempotency.JoinKey("tenant-7", "")) // a part is missing, and so is the key
	// Output:
	// tenant-7#order-1
	// tenant-7%23order#1
	// ""
}

// Work that is no function, such as a step that begins in one callback and ends in another, holds a Claim.
func ExampleGuard_Claim() {
	guard, err := idempotency.New("orders", idempotency.NewMemoryStore())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	claim, err := guard.Claim(ctx, idempotency.Request{Key: "order-1"})
	if err != nil {
		log.Fatal(err) // ErrInProgress, for one
	}
	fmt.Println("done before:", claim.Replayed())

	settle, cancel := idempotency.Detach(ctx) // lives on if ctx ends with the work
	defer cancel()
	if err := claim.Complete(settle, nil); err != nil {
		log.Fatal(err)
	}
	claim, err = guard.Claim(ctx, idempotency.Request{Key: "order-1"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("done before:", claim.Replayed())
	// Output:
	// done before: false
	// done before: true
}
