package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/localserver"
)

// config is what to measure.
type config struct {
	sizes        []int           // of batches
	latencies    []time.Duration // added to each request
	rounds       int             // the figures are their medians
	records      int             // at least so many in a measurement, over several batches if need be
	concurrency  int             // messages at once
	scenarioSize int             // batch size of the scenarios
	cutOff       time.Duration   // how long an invocation has whose handlers wait for its end
	memory       memoryConfig
}

// comparison is a run of the program.
type comparison struct {
	config
	t          testing.TB // what the server and its tables live as long as
	ctx        context.Context
	direct     *dynamodb.Client // not by way of the proxy
	proxy      *proxy
	folder     string // of events
	powertools string // the folder of its modules
	batch      int    // the next batch's number

	requests int           // that were measured
	ownCPU   time.Duration // what the proxy took for them
}

// invocationTime is how long an invocation has: as long as Lambda gives.
const invocationTime = 15 * time.Minute

// begin starts the server and the proxy. They end with t.
func begin(t testing.TB, ctx context.Context, c config) (*comparison, error) {
	module := localserver.Tool(t, "powertools/node_modules/@aws-lambda-powertools/idempotency")
	url := dynamotest.Start(t)
	p, err := startProxy(strings.TrimPrefix(url, "http://"))
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.close)
	return &comparison{
		config:     c,
		t:          t,
		ctx:        ctx,
		direct:     dynamotest.Client(t),
		proxy:      p,
		folder:     t.TempDir(),
		powertools: filepath.Dir(filepath.Dir(filepath.Dir(module))),
	}, nil
}

// start starts a client with a table of its own, which is created. It returns the table's name too.
func (c *comparison) start(name string, variables ...string) (*client, string, error) {
	table := dynamotest.Table(c.t, c.direct)
	spec := childSpec{Client: name, Endpoint: c.proxy.url, Table: table, Concurrency: c.concurrency}
	started, err := startClient(c.ctx, c.powertools, spec, variables...)
	return started, table, err
}

// delivery is a file of batches, one after the other.
type delivery struct {
	file          string
	first         int // batch number
	batches, size int
	eventBytes    int
}

func (d delivery) records() int { return d.batches * d.size }

// newDelivery writes so many batches of a size, of messages that no client has seen.
func (c *comparison) newDelivery(batches, size int) (delivery, error) {
	d := delivery{
		file: filepath.Join(c.folder, fmt.Sprintf("events-%d.json", c.batch)), first: c.batch, batches: batches, size: size,
	}
	c.batch += batches
	bytes, err := writeEvents(d.file, d.first, batches, size)
	d.eventBytes = bytes / batches // they are equally large
	return d, err
}

// measure has a client do a job, and returns what it took and what its requests cost. The error says so too if other
// messages were handled or told as failed than should have been.
func (c *comparison) measure(client *client, j job, wantHandled, wantFailed int) (usage, load, error) {
	if _, err := c.proxy.take(); err != nil {
		return usage{}, load{}, err
	}
	before, err := cpuTime()
	if err != nil {
		return usage{}, load{}, err
	}
	u, err := client.do(j)
	if err != nil {
		return usage{}, load{}, err
	}
	after, err := cpuTime()
	if err != nil {
		return usage{}, load{}, err
	}
	l, err := c.proxy.take()
	c.requests, c.ownCPU = c.requests+l.Requests, c.ownCPU+after-before
	if err == nil && (u.Handled != wantHandled || u.Failed != wantFailed) {
		err = fmt.Errorf("comparison: %s handled %d messages and failed %d, want %d and %d",
			client.name, u.Handled, u.Failed, wantHandled, wantFailed)
	}
	return u, l, err
}

// setting is a line of the tables, but for the client.
type setting struct {
	latency time.Duration
	replay  bool
	size    int
	client  string
}

// measurements are all that was measured.
type measurements struct {
	figures   map[setting]figures
	scenarios map[string]map[string]scenarioResult // by scenario and client
	memory    memoryResult
	proxyCPU  float64 // microseconds a request
}

// measureAll measures everything.
func (c *comparison) measureAll(progress func(string)) (m measurements, err error) {
	m.figures = map[setting]figures{}
	for _, latency := range c.latencies {
		for _, size := range c.sizes {
			progress(fmt.Sprintf("batches of %d, %v more latency", size, latency))
			if err := c.measureBatches(latency, size, m.figures); err != nil {
				return m, err
			}
		}
	}
	m.proxyCPU = float64(c.ownCPU.Microseconds()) / float64(max(1, c.requests))
	progress("what else can happen to a batch")
	if m.scenarios, err = c.measureScenarios(); err != nil {
		return m, err
	}
	progress("memory")
	m.memory, err = c.measureMemory()
	return m, err
}

// measureBatches measures all clients with the same batches, one after the other, round after round.
func (c *comparison) measureBatches(latency time.Duration, size int, results map[setting]figures) (err error) {
	clients := make([]*client, 0, len(clientNames))
	defer func() {
		for _, client := range clients {
			err = errors.Join(err, client.close())
		}
	}()
	for _, name := range clientNames {
		client, _, err := c.start(name)
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}
	c.proxy.delay(latency)
	defer c.proxy.delay(0)

	samples := map[setting][]figures{}
	for round := -1; round < c.rounds; round++ {
		batches := (c.records + size - 1) / size
		if round < 0 {
			batches = max(1, min(batches, 1000/size)) // to warm up
		}
		d, err := c.newDelivery(batches, size)
		if err != nil {
			return err
		}
		for _, client := range clients {
			for _, replay := range []bool{false, true} {
				handled := d.records()
				if replay {
					handled = 0
				}
				u, l, err := c.measure(client, job{Events: d.file, Time: invocationTime, Ending: succeeds}, handled, 0)
				if err != nil {
					return err
				}
				if round >= 0 {
					s := setting{latency: latency, replay: replay, size: size, client: client.name}
					samples[s] = append(samples[s], figuresOf(u, l, d.records()))
				}
			}
		}
	}
	for s, of := range samples {
		results[s] = medians(of)
	}
	return nil
}
