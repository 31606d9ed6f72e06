package watermark_test

import (
	"context"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/idempotency/watermark"
)

// A batch of three records comes again after its first two were done.
func Example() {
	ctx := context.Background()
	store := watermark.NewMemoryStore()
	key := watermark.Key("billing", "arn:aws:kinesis:eu-west-1:123456789012:stream/clicks", "shardId-000000000006")

	for attempt := 1; attempt <= 2; attempt++ {
		now := time.Now()
		owner := fmt.Sprintf("a fresh token, such as rand.Text() makes: %d", attempt)
		reached, err := store.Claim(ctx, watermark.ClaimRequest{
			Key: key, Owner: owner, Now: now, Lease: now.Add(time.Minute), Skew: time.Second, Expiry: now.Add(25 * time.Hour),
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		var to watermark.Position // nothing is done yet
		for _, sequence := range []string{"9", "10", "11"} {
			position := watermark.Position{Sequence: sequence, Sub: watermark.Whole}
			if position.Compare(reached) <= 0 {
				fmt.Println("skip", position)
				continue
			}
			fmt.Println("run", position)
			if attempt == 1 && sequence == "11" {
				break // it fails, and ends the batch
			}
			to = position
		}
		err = store.Advance(ctx, watermark.AdvanceRequest{
			Key: key, Owner: owner, Now: time.Now(), To: to, Expiry: time.Now().Add(25 * time.Hour), Release: true,
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// run 9
	// run 10
	// run 11
	// skip 9
	// skip 10
	// run 11
}

// A bug was deployed at record 4960. It and all records behind it are to run again.
func ExampleRewind() {
	store := watermark.NewMemoryStore() // dynamostore.NewWatermarks(client, "idempotency")
	to, err := watermark.Parse("4959")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = watermark.Rewind(context.Background(), store,
		"billing", "arn:aws:kinesis:eu-west-1:123456789012:stream/clicks", "shardId-000000000006", to)
	fmt.Println(err)
	// Output: <nil>
}
