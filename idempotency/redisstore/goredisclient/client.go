// Package goredisclient makes a redisstore.Client of a client of github.com/redis/go-redis.
package goredisclient

import (
	"context"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/oncekit/oncekit/idempotency/redisstore"
)

var _ redisstore.Pipeliner = (*Client)(nil)

// Client is a redisstore.Client, and a Pipeliner. It is safe for concurrent use.
type Client struct{ client redis.UniversalClient }

// New returns a Client that sends its commands by client, a *redis.Client or *redis.ClusterClient, which stays the
// caller's to close. It returns nil if client is nil, or a nil pointer, which redisstore.New reports.
//
// A *redis.Client ends a read by the context's deadline only where redis.Options.ContextTimeoutEnabled is true. Without,
// a connection that hangs holds a call for up to redis.Options.ReadTimeout longer. It sends a command again, up to
// redis.Options.MaxRetries times, if the reply was lost.
//
// A *redis.Ring spreads keys by its own rule, and gives a key to another server when one is down. Then two workers can
// both claim it. Do not use one.
func New(client redis.UniversalClient) *Client {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return &Client{client: client}
}

// Do implements redisstore.Client.
func (c *Client) Do(ctx context.Context, command redisstore.Command) ([]string, error) {
	return send(ctx, c.client, command).StringSlice()
}

// DoAll implements redisstore.Pipeliner.
func (c *Client) DoAll(ctx context.Context, commands []redisstore.Command) []redisstore.Reply {
	pipeline := c.client.Pipeline()
	sent := make([]*redis.Cmd, len(commands))
	for i, command := range commands {
		sent[i] = send(ctx, pipeline, command)
	}
	_, _ = pipeline.Exec(ctx) // each command has its own error, also where none was sent
	replies := make([]redisstore.Reply, len(commands))
	for i, cmd := range sent {
		replies[i].Values, replies[i].Err = cmd.StringSlice()
	}
	return replies
}

func send(ctx context.Context, to redis.Scripter, command redisstore.Command) *redis.Cmd {
	args := make([]any, len(command.Args))
	for i, arg := range command.Args {
		args[i] = arg
	}
	if command.Name == "EVAL" {
		return to.Eval(ctx, command.Script, []string{command.Key}, args...)
	}
	return to.EvalSha(ctx, command.Script, []string{command.Key}, args...)
}
