package redisstore_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/idempotency/redisstore/goredisclient"
	"github.com/oncekit/oncekit/idempotency/redisstore/rueidisclient"
)

// With go-redis. A *redis.ClusterClient takes its place for a cluster.
func Example() {
	client := redis.NewClient(&redis.Options{
		Addr:                  "localhost:6379",
		ContextTimeoutEnabled: true, // so that a connection that hangs does not hold a call longer than it may take
	})
	guard, err := idempotency.New("orders", redisstore.New(goredisclient.New(client)))
	if err != nil {
		fmt.Println(err)
		return
	}
	order, err := idempotency.Do(context.Background(), guard, "order-17", func(context.Context) (string, error) {
		return "placed", nil
	})
	fmt.Println(order.Value, order.Replayed, err)
}

// With rueidis.
func Example_rueidis() {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	store := redisstore.New(rueidisclient.New(client), func(o *redisstore.Options) { o.KeyPrefix = "orders-service:" })
	guard, err := idempotency.New("orders", store)
	fmt.Println(guard, err)
}
