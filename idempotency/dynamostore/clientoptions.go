package dynamostore

import (
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// ClientOptions makes a client's calls cheaper: they take some two thirds of the CPU time and of the memory that the
// SDK's take by default. It goes to dynamodb.NewFromConfig or dynamodb.New, after the client's other options:
//
//	client := dynamodb.NewFromConfig(cfg, dynamostore.ClientOptions)
//
// The calls remain the SDK's: retries and their quota, credentials, timeouts, the check of replies (CRC32), the
// correction of a wrong clock, errors, interceptors, middleware and the HTTP client are what they were. Four parts are
// replaced where they are the SDK's own, and are left alone where they are not:
//
//   - The signer, by one that writes the same signature with less memory, and leaves requests of another form than a
//     client's usual ones to the SDK's, for example those with a header that middleware has added.
//   - The encoding of the requests of Client's operations, by one that uses its buffers again.
//   - The resolver of endpoints, by one that keeps the latest endpoint. It is resolved again when a parameter changes:
//     Region, account, table, FIPS, dual stack, BaseEndpoint.
//   - The User-Agent header, which is built once an operation. What the options of a single call change in it
//     (AppID, the kind of retries) does not show.
//
// Two headers that DynamoDB does not need are not sent, Amz-Sdk-Invocation-Id and Amz-Sdk-Request. They tell AWS which
// requests are attempts of one call.
//
// It can be used for a client that a Store does not use, too. With an SDK that has changed in one of these places, that
// part is as the SDK has it: a request is signed and encoded in both ways first, and what differs is not replaced. So a
// signer with options of its own (v4.SignerOptions) and another version of the protocol stay as well.
func ClientOptions(o *dynamodb.Options) {
	if sdk, ok := o.HTTPSignerV4.(*v4.Signer); ok && signsAlike(sdk) {
		o.HTTPSignerV4 = &signer{sdk: sdk}
	}
	if sdk, ok := o.Protocol.(*awsjson.Protocol); ok && writesAlike(sdk) {
		o.Protocol = protocol{sdk}
	}
	o.EndpointResolverV2 = newEndpoints(o.EndpointResolverV2)
	agents := new(userAgents)
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		_, _ = stack.Build.Remove((*awsmiddleware.ClientRequestID)(nil).ID()) // an SDK without it need not fail
		agents.replace(stack)
		return nil
	})
}
