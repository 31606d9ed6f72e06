// Package dynamotest gives tests a DynamoDB-compatible server to talk to over the wire, clients and fresh tables on
// it, the streams of tables, and a proxy that puts faults between a client and the server.
//
// The server is the one that `make tools` installs, started on a free loopback port once a test process. The
// environment variable ONCEKIT_DYNAMODB_ENDPOINT names another endpoint to use instead; then none is started. With
// neither, tests are skipped, or fail where the environment variable CI is set.
package dynamotest

import (
	"os/exec"
	"strconv"
	"testing"

	"github.com/oncekit/oncekit/internal/localserver"
)

var server = localserver.Server{
	Package:  "dynamotest",
	Variable: "ONCEKIT_DYNAMODB_ENDPOINT",
	Tool:     "bin/dynoxide",
	Command: func(tool string, port int) *exec.Cmd {
		return exec.Command(tool, "--port", strconv.Itoa(port))
	},
}

// StopAfter returns an m that stops this process's server after the tests ran. Every package that calls Start has it in
// its TestMain: nothing else knows when the last test has ended.
func StopAfter(m localserver.TestingM) localserver.TestingM { return server.StopAfter(m) }

// Start returns the URL of the endpoint, and starts the server if no test of this process has done so yet. Where there
// is none, it ends the test as the package's comment says.
func Start(t testing.TB) string {
	t.Helper()
	return server.Start(t)
}
