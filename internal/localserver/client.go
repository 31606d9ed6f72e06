package localserver

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Region returns the Region that clients are for: that of the environment variable AWS_REGION, or us-east-1.
func Region() string { return cmp.Or(os.Getenv("AWS_REGION"), "us-east-1") }

// Credentials are those of the environment variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or
// made up where these are not set.
var Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID:     cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "test"),
		SecretAccessKey: cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "test"),
		SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
	}, nil
})

// HTTPClient returns a client whose connections are closed when the test ends.
func HTTPClient(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
