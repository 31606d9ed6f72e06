// Package kinesalite gives tests a Kinesis-compatible server to talk to over the wire, fresh streams on it, and their
// shards as Lambda reads them.
//
// The server is https://github.com/mhart/kinesalite, which `make tools` installs. It runs in Node.js on a free loopback
// port, once a test process, and keeps streams in memory. The environment variable ONCEKIT_KINESIS_ENDPOINT names another
// endpoint to use instead; then none is started. With neither, tests are skipped, or fail where the environment variable
// CI is set.
package kinesalite

import (
	_ "embed"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/oncekit/oncekit/internal/localserver"
)

//go:embed serve.js
var serve string

var server = localserver.Server{
	Package:  "kinesalite",
	Variable: "ONCEKIT_KINESIS_ENDPOINT",
	Tool:     "kinesalite/node_modules/kinesalite",
	Command: func(tool string, port int) *exec.Cmd {
		command := exec.Command("node", "-e", serve, tool, strconv.Itoa(port))
		// It is in the ARNs of streams.
		command.Env = append(os.Environ(), "AWS_REGION="+localserver.Region())
		return command
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

// Client returns a client for the endpoint of Start. Its connections are closed when the test ends. Its Region and
// credentials are those of localserver.
func Client(t testing.TB, optFns ...func(*kinesis.Options)) *kinesis.Client {
	t.Helper()
	return kinesis.New(kinesis.Options{
		BaseEndpoint: aws.String(Start(t)),
		Region:       localserver.Region(),
		Credentials:  localserver.Credentials,
		HTTPClient:   localserver.HTTPClient(t),
	}, optFns...)
}
