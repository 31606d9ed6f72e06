package dynamostore

import (
	"context"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const userAgentHeader = "User-Agent"

// userAgents has the User-Agent header of each operation of one client: it is the same for all its calls, and the SDK
// builds it for each of them.
type userAgents struct {
	values sync.Map // of strings, by the operation's name
}

// replace puts a userAgent in the place of the SDK's. It leaves a stack alone that has none.
func (u *userAgents) replace(stack *middleware.Stack) {
	id := (*awsmiddleware.RequestUserAgent)(nil).ID()
	if sdk, ok := stack.Build.Get(id); ok {
		_, _ = stack.Build.Swap(id, &userAgent{sdk: sdk, of: u, operation: stack.ID()})
	}
}

// userAgent is middleware that sets the header.
type userAgent struct {
	sdk       middleware.BuildMiddleware
	of        *userAgents
	operation string
}

// ID implements middleware.BuildMiddleware. It is not the SDK's: who looks for that one wants its type, and adds one if
// there is none.
func (*userAgent) ID() string { return "oncekit:UserAgent" }

// HandleBuild implements middleware.BuildMiddleware.
func (u *userAgent) HandleBuild(
	ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
) (middleware.BuildOutput, middleware.Metadata, error) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok || request.Header.Get(userAgentHeader) != "" {
		return u.sdk.HandleBuild(ctx, in, next) // which adds to what middleware has set
	}
	if value, ok := u.of.values.Load(u.operation); ok {
		request.Header[userAgentHeader] = []string{value.(string)}
		return next.HandleBuild(ctx, in)
	}
	return u.sdk.HandleBuild(ctx, in, middleware.BuildHandlerFunc(func(
		ctx context.Context, in middleware.BuildInput,
	) (middleware.BuildOutput, middleware.Metadata, error) {
		u.of.values.Store(u.operation, request.Header.Get(userAgentHeader))
		return next.HandleBuild(ctx, in)
	}))
}
