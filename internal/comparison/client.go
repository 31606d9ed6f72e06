package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// The clients, by the names they have in the tables.
const (
	handWritten = "hand-written"
	single      = "oncekit single"
	bulk        = "oncekit bulk"
	bulkAsks    = "oncekit bulk, asks first"
	powertools  = "Powertools TypeScript"
)

// clientNames are all clients, in the order of the tables.
var clientNames = []string{handWritten, single, bulk, bulkAsks, powertools}

//go:embed powertools.js
var powertoolsScript string

// client is a client in a process of its own.
type client struct {
	name    string
	command *exec.Cmd
	in      io.WriteCloser
	jobs    *json.Encoder
	usages  *json.Decoder
}

// startClient starts a client. Its process ends when close is called, this process ends, or ctx does. Variables, such as
// "GOMEMLIMIT=128MiB", are added to its environment.
func startClient(ctx context.Context, powertoolsFolder string, spec childSpec, variables ...string) (*client, error) {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var command *exec.Cmd
	if spec.Client == powertools {
		command = exec.CommandContext(ctx, "node", "--expose-gc", "--no-warnings", "-e", powertoolsScript, string(encoded))
		command.Dir = powertoolsFolder // where its modules are looked for
		command.Env = append(os.Environ(), "AWS_LAMBDA_FUNCTION_NAME=orders")
	} else {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command = exec.CommandContext(ctx, self)
		command.Env = append(os.Environ(), childVariable+"="+string(encoded))
	}
	command.Env = append(command.Env, variables...)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("comparison: start %s: %w", spec.Client, err)
	}
	return &client{
		name: spec.Client, command: command, in: in, jobs: json.NewEncoder(in), usages: json.NewDecoder(out),
	}, nil
}

// do has the client do a job.
func (c *client) do(j job) (usage, error) {
	var u usage
	if err := c.jobs.Encode(j); err != nil {
		return u, fmt.Errorf("comparison: %s: %w", c.name, err)
	}
	if err := c.usages.Decode(&u); err != nil {
		return u, fmt.Errorf("comparison: %s: answer: %w", c.name, err)
	}
	if u.Error != "" {
		return u, fmt.Errorf("comparison: %s: %s", c.name, u.Error)
	}
	return u, nil
}

// close ends the process and waits for it.
func (c *client) close() error {
	if err := errors.Join(c.in.Close(), c.command.Wait()); err != nil {
		return fmt.Errorf("comparison: end %s: %w", c.name, err)
	}
	return nil
}
