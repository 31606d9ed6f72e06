package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// scenario is a delivery of one batch.
type scenario struct {
	name            string
	found           state  // what is in the table for each message
	ending          ending // of the handler
	handled, failed int    // in percent; -1 for any number
}

// state is what a table has for a key.
type state int

const (
	nothing   state = iota
	completed       // by the same client
	abandoned       // claimed by somebody whose lease has ended
	claimed         // by somebody else
)

// scenarios are what can happen to a batch, each with all of its messages.
var scenarios = []scenario{
	{name: "first run", found: nothing, ending: succeeds, handled: 100},
	{name: "duplicates", found: completed, ending: succeeds},
	{name: "takeover of claims whose lease has ended", found: abandoned, ending: succeeds, handled: 100},
	{name: "claimed by somebody else", found: claimed, ending: succeeds, failed: 100},
	{name: "the handler fails", found: nothing, ending: fails, handled: 100, failed: 100},
	{name: "cut off by the deadline", found: nothing, ending: waits, handled: -1, failed: 100},
}

// scenarioClients are the clients that scenarios are measured with.
var scenarioClients = []string{single, bulk, bulkAsks}

// scenarioResult is what a batch took.
type scenarioResult struct {
	load
	handled int
}

// measureScenarios returns the results by scenario and client.
func (c *comparison) measureScenarios() (map[string]map[string]scenarioResult, error) {
	results := map[string]map[string]scenarioResult{}
	for _, s := range scenarios {
		results[s.name] = map[string]scenarioResult{}
	}
	for _, name := range scenarioClients {
		if err := c.measureScenariosOf(name, results); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (c *comparison) measureScenariosOf(name string, results map[string]map[string]scenarioResult) (err error) {
	client, table, err := c.start(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.close()) }()
	for _, s := range scenarios {
		r, err := c.measureScenario(s, client, table)
		if err != nil {
			return fmt.Errorf("comparison: scenario %q: %w", s.name, err)
		}
		results[s.name][name] = r
	}
	return nil
}

func (c *comparison) measureScenario(s scenario, client *client, table string) (r scenarioResult, err error) {
	d, err := c.newDelivery(1, c.scenarioSize)
	if err != nil {
		return r, err
	}
	j := job{Events: d.file, Time: invocationTime, Ending: succeeds}
	switch s.found {
	case completed:
		if _, _, err := c.measure(client, j, d.size, 0); err != nil {
			return r, err
		}
	case abandoned:
		err = claimAll(c.ctx, c.direct, table, d, time.Now().Add(-time.Minute))
	case claimed:
		err = claimAll(c.ctx, c.direct, table, d, time.Now().Add(time.Hour))
	}
	if err != nil {
		return r, err
	}
	if j.Ending = s.ending; s.ending == waits {
		j.Time = c.cutOff
	}
	if _, err := c.proxy.take(); err != nil {
		return r, err
	}
	u, err := client.do(j)
	if err != nil {
		return r, err
	}
	if r.load, err = c.proxy.take(); err != nil {
		return r, err
	}
	r.handled = u.Handled
	if s.handled >= 0 && u.Handled != s.handled*d.size/100 || u.Failed != s.failed*d.size/100 {
		return r, fmt.Errorf("comparison: %s handled %d and failed %d of %d messages, want %d %% and %d %%",
			client.name, u.Handled, u.Failed, d.size, s.handled, s.failed)
	}
	return r, nil
}

// claimAll claims the messages of a batch for somebody else.
func claimAll(ctx context.Context, client *dynamodb.Client, table string, d delivery, lease time.Time) error {
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	number := func(v int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
	}
	for i := range d.size {
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
			"id": text("orders#" + messageID(d.first, i)), "status": text("INPROGRESS"), "owner": text("somebody else"),
			"in_progress_expiration": number(lease.UnixMilli()), "expiration": number(lease.Add(time.Hour).Unix()),
		}})
		if err != nil {
			return err
		}
	}
	return nil
}
