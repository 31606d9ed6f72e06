package dynamostore

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
)

// endpoints is the SDK's resolver, and has its latest answer ready: what an endpoint depends on (the Region, FIPS,
// dual stack, the account, the table, an endpoint of the user's) seldom changes from one call to the next.
type endpoints struct {
	sdk    dynamodb.EndpointResolverV2
	latest atomic.Pointer[resolvedEndpoint]
}

type resolvedEndpoint struct {
	parameters endpointParameters
	endpoint   smithyendpoints.Endpoint // the SDK reads it, and changes only its copy
}

// endpointParameters are dynamodb.EndpointParameters by value, empty where they are not set. They lack the two that few
// calls have: lists of tables, and what tells a search.
type endpointParameters struct {
	region, endpoint, accountID, accountIDMode, table string
	dualStack, fips                                   bool
}

// knownEndpointParameters is how many fields dynamodb.EndpointParameters has as far as endpoints knows. With an SDK that
// has others, each call is resolved.
const knownEndpointParameters = 9

// newEndpoints returns a resolver that remembers, or sdk itself if that is not the SDK's own: what another one's answers
// depend on is not known.
func newEndpoints(sdk dynamodb.EndpointResolverV2) dynamodb.EndpointResolverV2 {
	if reflect.TypeOf(sdk) != reflect.TypeOf(dynamodb.NewDefaultEndpointResolverV2()) ||
		reflect.TypeFor[dynamodb.EndpointParameters]().NumField() != knownEndpointParameters {
		return sdk
	}
	return &endpoints{sdk: sdk}
}

// ResolveEndpoint implements dynamodb.EndpointResolverV2.
func (e *endpoints) ResolveEndpoint(
	ctx context.Context, p dynamodb.EndpointParameters,
) (smithyendpoints.Endpoint, error) {
	if p.ResourceArnList != nil || p.IsSearchOperation != nil || p.Endpoint != nil && *p.Endpoint == "" {
		return e.sdk.ResolveEndpoint(ctx, p)
	}
	parameters := endpointParameters{
		region: valueOf(p.Region), endpoint: valueOf(p.Endpoint), accountID: valueOf(p.AccountId),
		accountIDMode: valueOf(p.AccountIdEndpointMode), table: valueOf(p.ResourceArn),
		dualStack: valueOf(p.UseDualStack), fips: valueOf(p.UseFIPS),
	}
	if latest := e.latest.Load(); latest != nil && latest.parameters == parameters {
		return latest.endpoint, nil
	}
	endpoint, err := e.sdk.ResolveEndpoint(ctx, p)
	if err == nil {
		e.latest.Store(&resolvedEndpoint{parameters: parameters, endpoint: endpoint})
	}
	return endpoint, err
}

// valueOf returns what p points to, or the zero value.
func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
