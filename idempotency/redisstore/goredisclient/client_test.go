package goredisclient_test

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/idempotency/redisstore/goredisclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNewOfNil(t *testing.T) {
	for _, client := range []redis.UniversalClient{nil, (*redis.Client)(nil)} {
		if c := goredisclient.New(client); c != nil {
			t.Errorf("New(%#v) = %v, want nil, which redisstore.New reports", client, c)
		}
	}
}

// TestClosed has a client that sends nothing any more. What the store makes of its replies is tested in package redisstore.
func TestClosed(t *testing.T) {
	closed := redis.NewClient(&redis.Options{})
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	c := goredisclient.New(closed)
	command := redisstore.Command{Name: "EVAL", Script: "return {'done'}", Key: "k"}
	if _, err := c.Do(t.Context(), command); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("Do: error is %v, want %v", err, redis.ErrClosed)
	}
	replies := c.DoAll(t.Context(), []redisstore.Command{command, command})
	if len(replies) != 2 {
		t.Fatalf("%d replies, want 2", len(replies))
	}
	for i, r := range replies {
		if !errors.Is(r.Err, redis.ErrClosed) {
			t.Errorf("reply %d: error is %v, want %v", i, r.Err, redis.ErrClosed)
		}
	}
}
