package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/internal/chaos/child"
)

var errKilled = errors.New("ledger: the process was killed")

// workers is the function, as the queue invokes it: one process at a time, and the next one when that is killed.
type workers struct {
	program string
	seed    draw.Seed
	spec    workerSpec
	kills   int // how many processes are killed

	mu      sync.Mutex
	process *child.Process // nil: none runs
	started int
	killed  int
}

// lastRequest is the last request in which a process is killed. A batch of ten transfers takes eleven with transactions,
// and up to 32 without.
const lastRequest = 11

// Invoke hands the event to the process. It is lambda.Handler.
func (w *workers) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		if err := w.start(); err != nil {
			return nil, err
		}
	}
	process := w.process
	defer context.AfterFunc(ctx, process.Kill)() // as Lambda does at a function's timeout
	answer, err := process.Ask(payload)
	if err == nil && string(answer) != dying {
		return answer, nil
	}
	process.Kill()
	process.Wait()
	w.process = nil
	if err != nil {
		return nil, err
	}
	w.killed++
	return nil, errKilled
}

func (w *workers) start() error {
	spec := w.spec
	if w.killed < w.kills {
		spec.Death = death{
			Request: 1 + w.seed.Number(lastRequest, "request", w.started),
			After:   w.seed.Chance(0.5, "after", w.started),
		}
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	command := exec.Command(w.program)
	command.Env = append(os.Environ(), workerVariable+"="+string(encoded))
	command.Stderr = os.Stderr
	if w.process, err = child.Start(command); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	w.started++
	return nil
}

// close ends the process that runs.
func (w *workers) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return nil
	}
	return w.process.Close()
}
