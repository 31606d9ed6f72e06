//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// config is what to run.
type config struct {
	program string        // that workers run
	folder  string        // for the journal
	seed    uint64        // decides all that the machine's speed does not
	workers int           // at a time
	time    time.Duration // for which workers are killed and frozen
	least   least         // if all of it has happened, the time is over; zero: it is not
	keys    int           // as least, of messages
}

// least is how often something must have happened.
type least struct{ killed, frozen, takenOver, refused int }

// faults are what was done to workers and their requests.
type faults struct {
	started, killed, frozen, thawed       atomic.Int64
	lost, delayed, dropped, refused, late atomic.Int64
}

// run is a run of the program.
type run struct {
	config  config
	queue   *queue
	journal *os.File
	claims  string // a table's name
	effects string // a table's name
	server  string
	client  *dynamodb.Client

	strikes atomic.Bool // whether workers are killed and frozen, and their requests lost
	faults  faults
	later   sync.WaitGroup // what is yet to happen to workers

	mu        sync.Mutex
	processes map[int]*process // by number
}

// start runs workers for the time and until they have done all that there is, and returns what came of it.
func start(ctx context.Context, t testing.TB, c config, progress func(string)) (*result, error) {
	journal, err := os.OpenFile(filepath.Join(c.folder, "journal"), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	reader, err := os.Open(journal.Name())
	if err != nil {
		return nil, err
	}
	defer reader.Close()

	r := &run{
		config: c, queue: newQueue(c.seed), journal: journal, server: dynamotest.Start(t),
		client: dynamotest.Client(t), processes: make(map[int]*process),
	}
	r.claims, r.effects = dynamotest.Table(t, r.client), dynamotest.Table(t, r.client)
	began := time.Now()
	journaled := newTail(reader)
	err = r.serve(ctx, t, journaled, progress)
	err = errors.Join(err, r.close())
	if err != nil {
		return nil, err
	}
	found, err := r.read(ctx, journaled.history)
	if err != nil {
		return nil, err
	}
	found.took = time.Since(began)
	return found, nil
}

// serve runs the slots until the queue is done with.
func (r *run) serve(ctx context.Context, t testing.TB, journaled *tail, progress func(string)) error {
	r.strikes.Store(true)
	watchedCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	slots, slotsCtx := errgroup.WithContext(watchedCtx)
	for i := range r.config.workers {
		chance := rand.New(rand.NewPCG(r.config.seed, uint64(100+i)))
		s := &slot{run: r, proxy: dynamotest.NewProxy(t), chance: chance}
		s.proxy.Random(chance.Uint64(), s.choose)
		slots.Go(func() error { return s.serve(slotsCtx) })
	}
	watched := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		err := r.watch(slotsCtx, ended, journaled, progress)
		if err != nil {
			cancel()
		}
		watched <- err
	}()
	err := slots.Wait()
	close(ended)
	r.later.Wait()
	if err := errors.Join(<-watched, err); err != nil {
		return err
	}
	return r.settle(ctx, journaled)
}

// watch reads the journal, and ends the time of faults when it is over, or when enough has happened.
func (r *run) watch(ctx context.Context, ended <-chan struct{}, journaled *tail, progress func(string)) error {
	over := time.NewTimer(r.config.time)
	defer over.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	told := time.Now()
	for {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return nil // the slots say why
		case <-over.C:
			r.calm()
		case <-tick.C:
		}
		if err := journaled.read(); err != nil {
			return err
		}
		if r.config.least != (least{}) && r.enough(journaled.history) {
			r.calm()
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			progress(fmt.Sprintf("%d killed, %d frozen, %d taken over, %d refused, %d keys", r.faults.killed.Load(),
				r.faults.frozen.Load(), journaled.counts[name(idempotency.EventTakenOver)],
				journaled.counts[name(idempotency.EventLost)], r.queue.sent()))
		}
	}
}

// calm ends the time of faults.
func (r *run) calm() {
	r.strikes.Store(false)
	r.queue.close()
}

func (r *run) enough(h *history) bool {
	return r.queue.sent() >= r.config.keys && len(r.config.least.missed(&r.faults, h)) == 0
}

// missed says what has not happened often enough.
func (l least) missed(f *faults, h *history) (missed []string) {
	for _, m := range []struct {
		name      string
		got, want int
	}{
		{"killed", int(f.killed.Load()), l.killed},
		{"frozen", int(f.frozen.Load()), l.frozen},
		{"taken over", h.counts[name(idempotency.EventTakenOver)], l.takenOver},
		{"late finishers refused", h.counts[name(idempotency.EventLost)], l.refused},
	} {
		if m.got < m.want {
			missed = append(missed, fmt.Sprintf("%s: %d, want at least %d", m.name, m.got, m.want))
		}
	}
	return missed
}

// settle waits until workers that were not killed have settled all their claims: handlers that were given up settle
// after their batch was answered.
func (r *run) settle(ctx context.Context, journaled *tail) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		if err := journaled.read(); err != nil {
			return err
		}
		open := r.open(journaled.history)
		if open == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("chaos: worker %d lives and does not settle the claim of %s", open.worker, open.key)
		}
	}
}

// open returns a claim that a living worker has not settled, or nil.
func (r *run) open(h *history) *claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range h.claims {
		if p := r.processes[c.worker]; c.settled == 0 && !c.renewed && !p.killed {
			return c
		}
	}
	return nil
}

// spec returns what the next worker is given.
func (r *run) spec(store string) workerSpec {
	return workerSpec{
		Worker: int(r.faults.started.Add(1)), Seed: r.config.seed, Store: store, Server: r.server,
		Claims: r.claims, Effects: r.effects,
	}
}

// add takes down that a worker runs.
func (r *run) add(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processes[p.number] = p
}

// close ends the workers that still run.
func (r *run) close() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.processes {
		if p.killed {
			p.Wait()
			continue
		}
		if failed := p.Close(); failed != nil {
			err = errors.Join(err, fmt.Errorf("worker %d: %w", p.number, failed))
		}
	}
	return err
}
