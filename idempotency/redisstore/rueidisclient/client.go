// Package rueidisclient makes a redisstore.Client of a client of github.com/redis/rueidis.
package rueidisclient

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/oncekit/oncekit/idempotency/redisstore"
)

var _ redisstore.Pipeliner = (*Client)(nil)

// Client is a redisstore.Client, and a Pipeliner. It is safe for concurrent use.
type Client struct{ client rueidis.Client }

// New returns a Client that sends its commands by client, which stays the caller's to close. It returns nil if client is
// nil, which redisstore.New reports.
//
// A command is sent again until its context ends if the reply was lost, unless rueidis.ClientOption.DisableRetry is set.
func New(client rueidis.Client) *Client {
	if client == nil {
		return nil
	}
	return &Client{client: client}
}

// Do implements redisstore.Client.
func (c *Client) Do(ctx context.Context, command redisstore.Command) ([]string, error) {
	return c.client.Do(ctx, c.build(command)).AsStrSlice()
}

// DoAll implements redisstore.Pipeliner.
func (c *Client) DoAll(ctx context.Context, commands []redisstore.Command) []redisstore.Reply {
	built := make(rueidis.Commands, len(commands))
	for i, command := range commands {
		built[i] = c.build(command)
	}
	replies := make([]redisstore.Reply, len(commands))
	for i, result := range c.client.DoMulti(ctx, built...) {
		replies[i].Values, replies[i].Err = result.AsStrSlice()
	}
	return replies
}

// build returns a command that may be sent twice: the scripts know what they have written. It is pinned, since rueidis uses
// the memory of a command again while its writer may still read it, if the connection broke or the context ended: what is
// sent then could be a part of another command.
func (c *Client) build(command redisstore.Command) rueidis.Completed {
	return c.client.B().Arbitrary(command.Name).Args(command.Script, "1").Keys(command.Key).Args(command.Args...).
		Build().ToRetryable().Pin()
}
