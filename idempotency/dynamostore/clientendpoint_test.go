package dynamostore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

func resolver(sdk dynamodb.EndpointResolverV2) dynamodb.EndpointResolverV2 {
	o := dynamodb.Options{EndpointResolverV2: sdk}
	dynamostore.ClientOptions(&o)
	return o.EndpointResolverV2
}

// TestEndpoints compares the answers with those of the SDK's resolver, for parameters that change from call to call.
func TestEndpoints(t *testing.T) {
	sdk := dynamodb.NewDefaultEndpointResolverV2()
	ours := resolver(sdk)
	table := func(account string) *string { return aws.String("arn:aws:dynamodb:us-east-1:" + account + ":table/t") }
	ways := []func(*dynamodb.EndpointParameters){
		func(p *dynamodb.EndpointParameters) { p.Region = aws.String("eu-west-1") },
		func(p *dynamodb.EndpointParameters) { p.Region = aws.String("local") },
		func(p *dynamodb.EndpointParameters) { p.Region = nil },
		func(p *dynamodb.EndpointParameters) { p.UseDualStack = aws.Bool(true) },
		func(p *dynamodb.EndpointParameters) { p.UseFIPS = aws.Bool(true) },
		func(p *dynamodb.EndpointParameters) { p.Endpoint = aws.String("http://127.0.0.1:8000") },
		func(p *dynamodb.EndpointParameters) { p.Endpoint = aws.String("") },
		func(p *dynamodb.EndpointParameters) { p.Endpoint = aws.String(":") },
		func(p *dynamodb.EndpointParameters) { p.AccountId = aws.String("111122223333") },
		func(p *dynamodb.EndpointParameters) { p.AccountId = aws.String("444455556666") },
		func(p *dynamodb.EndpointParameters) { p.AccountIdEndpointMode = aws.String("disabled") },
		func(p *dynamodb.EndpointParameters) { p.AccountIdEndpointMode = aws.String("required") },
		func(p *dynamodb.EndpointParameters) { p.ResourceArn = table("111122223333") },
		func(p *dynamodb.EndpointParameters) { p.ResourceArn = table("444455556666") },
		func(p *dynamodb.EndpointParameters) { p.ResourceArnList = []string{*table("111122223333")} },
		func(p *dynamodb.EndpointParameters) { p.ResourceArnList = []string{*table("444455556666")} },
		func(p *dynamodb.EndpointParameters) { p.IsSearchOperation = aws.Bool(true) },
	}
	resolve := func(t *rapid.T) {
		p := dynamodb.EndpointParameters{
			Region: aws.String("us-east-1"), UseDualStack: aws.Bool(false), UseFIPS: aws.Bool(false),
			AccountIdEndpointMode: aws.String("preferred"),
		}
		if rapid.Bool().Draw(t, "one table") {
			p.ResourceArn = aws.String("t")
		}
		for range rapid.IntRange(0, 3).Draw(t, "ways") {
			ways[rapid.IntRange(0, len(ways)-1).Draw(t, "way")](&p)
		}
		want, wantErr := sdk.ResolveEndpoint(context.Background(), p)
		got, err := ours.ResolveEndpoint(context.Background(), p)
		if (err == nil) != (wantErr == nil) || err == nil && want.URI != got.URI {
			t.Errorf("endpoint is %v (%v); want %v (%v)", got.URI.String(), err, want.URI.String(), wantErr)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			resolve(t)
		}
	})
}

// TestEndpointParameters fails for an SDK with parameters that the remembered endpoint does not know. Then the SDK
// resolves each call, until clientendpoint.go has them too.
func TestEndpointParameters(t *testing.T) {
	sdk := dynamodb.NewDefaultEndpointResolverV2()
	if resolver(sdk) == sdk {
		t.Error("the SDK's resolver is used for each call; want knownEndpointParameters and what it counts brought up to date")
	}
}

type userResolver struct{ err error }

func (r *userResolver) ResolveEndpoint(context.Context, dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
	return smithyendpoints.Endpoint{}, r.err
}

// TestUserResolver has a resolver of the user's left alone.
func TestUserResolver(t *testing.T) {
	want := &userResolver{errors.New("user's")}
	if got := resolver(want); got != want {
		t.Errorf("the resolver is %T; want the user's", got)
	}
}
