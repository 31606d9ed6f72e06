//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/internal/chaos/child"
	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

// slot is a place for a worker, one after the other, with a proxy of its own between them and the server.
type slot struct {
	run   *run
	proxy *dynamotest.Proxy

	mu      sync.Mutex
	chance  *rand.Rand
	process *process // nil: none runs
	fate    fate     // of the process
	held    []delivery
}

// process is a worker, or was one.
type process struct {
	*child.Process
	number int

	// Guarded by the slot's mutex while its slot runs.
	killed bool
	frozen []interval
}

// interval is a time between two times in epoch milliseconds. It has not ended if its end is 0.
type interval struct{ from, to int64 }

// wasFrozen reports whether the process was, at some time from one to another. 0 is the end of time.
func (p *process) wasFrozen(from, to int64) bool {
	return slices.ContainsFunc(p.frozen, func(i interval) bool {
		return (to == 0 || i.from <= to) && (i.to == 0 || from <= i.to)
	})
}

// serve has the slot's workers handle what the queue gives, until it gives nothing more.
func (s *slot) serve(ctx context.Context) error {
	for {
		batch := s.run.queue.receive(ctx)
		if batch == nil {
			return ctx.Err()
		}
		if err := s.deliver(batch); err != nil {
			return err
		}
	}
}

// deliver gives a batch to the slot's worker, and takes back what does not come to be done.
func (s *slot) deliver(batch []delivery) error {
	p, err := s.ready(batch)
	if err != nil {
		return err
	}
	answer, err := p.Ask(payload(batch))
	s.mu.Lock()
	held := s.held
	s.held = nil
	killed := p.killed
	if err != nil {
		s.process = nil
	}
	s.mu.Unlock()
	if err != nil {
		s.run.queue.back(held, timeout)
		if state := p.Wait(); !killed {
			return fmt.Errorf("chaos: worker %d has ended by itself: %v", p.number, state)
		}
		return nil
	}
	var response struct {
		events.SQSEventResponse
		ErrorMessage string `json:"errorMessage"`
	}
	if err := json.Unmarshal(answer, &response); err != nil || response.ErrorMessage != "" {
		return fmt.Errorf("chaos: worker %d answers %.200s (%v); want a batch response", p.number, answer, err)
	}
	var done, undone []delivery
	for _, d := range batch {
		if slices.ContainsFunc(response.BatchItemFailures, func(f events.SQSBatchItemFailure) bool {
			return f.ItemIdentifier == d.id
		}) {
			undone = append(undone, d)
		} else {
			done = append(done, d)
		}
	}
	late := held == nil
	s.run.queue.done(done, late)
	if !late {
		s.run.queue.back(undone, timeout)
	}
	return nil
}

// ready returns the slot's worker, which is started if there is none, as it gets the batch.
func (s *slot) ready(batch []delivery) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = batch
	if s.process != nil {
		return s.process, nil
	}
	spec := s.run.spec(s.proxy.URL)
	spec.SingleCalls = s.chance.IntN(3) == 0
	spec.Concurrency = 1 + s.chance.IntN(batchSize)
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	command := exec.Command(s.run.config.program)
	command.Env = append(os.Environ(), workerVariable+"="+string(encoded))
	command.Stderr = os.Stderr
	command.ExtraFiles = []*os.File{s.run.journal}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, err := child.Start(command)
	if err != nil {
		return nil, err
	}
	s.process = &process{Process: started, number: spec.Worker}
	s.fate = newFate(s.chance)
	s.run.add(s.process)
	return s.process, nil
}

// payload is the event of a batch.
func payload(batch []delivery) []byte {
	var event events.SQSEvent
	for _, d := range batch {
		body, err := json.Marshal(d.task)
		if err != nil {
			panic(err) // it is a truth value
		}
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: d.id, ReceiptHandle: "receipt", Body: string(body), EventSource: "aws:sqs",
			EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:chaos",
		})
	}
	return sqstest.Payload(event)
}
