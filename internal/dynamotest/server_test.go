package dynamotest

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(StopAfter(m)) }

func TestEndpointVariable(t *testing.T) {
	const url = "http://localhost:1"
	t.Setenv("ONCEKIT_DYNAMODB_ENDPOINT", url)
	if got := Start(t); got != url {
		t.Errorf("Start = %q; want the endpoint of the environment, %q", got, url)
	}
}
