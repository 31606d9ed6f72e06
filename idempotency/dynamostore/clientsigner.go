package dynamostore

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	signingAlgorithm = "AWS4-HMAC-SHA256"
	signingTime      = "20060102T150405Z"
	signingDay       = "20060102"

	dateHeader  = "X-Amz-Date"
	tokenHeader = "X-Amz-Security-Token"
	// attemptHeader tells AWS of the SDK's retries ("attempt=1; max=4"). Requests work without it, and with it the
	// headers of a request in Lambda are nine: one more than the smallest map holds, and the SDK and net/http copy them.
	attemptHeader = "Amz-Sdk-Request"
)

// signedHeaders are the headers that the signature of a request to DynamoDB covers, in the order of the signature. Those
// without a header's name are not in http.Header.
var signedHeaders = [...]struct{ header, name string }{
	{"Accept-Encoding", "accept-encoding"},
	{"", "content-length"},
	{"Content-Type", "content-type"},
	{"", "host"},
	{dateHeader, "x-amz-date"},
	{tokenHeader, "x-amz-security-token"},
	{"X-Amz-Target", "x-amz-target"},
}

// unsignedHeaders are those that the SDK's signer leaves out of the signature too: on its way, a request can change in
// them.
var unsignedHeaders = [...]string{"Authorization", "User-Agent", "X-Amzn-Trace-Id"}

// signer signs as the SDK's signer does, with a tenth of the memory. It knows the requests that DynamoDB gets and no
// others: a request of another form, with a header of the user's for example, it leaves to the SDK's signer.
//
// The method is that of https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
type signer struct {
	sdk dynamodb.HTTPSignerV4
	key atomic.Pointer[signingKey] // the latest one
}

// signsAlike reports whether a signer signs a usual request as the SDK's does in sdk's place. It does not if sdk has options
// of the user's, which it does not show, or if the SDK has changed.
func signsAlike(sdk *v4.Signer) bool {
	if sdk == nil {
		return false
	}
	credentials := aws.Credentials{AccessKeyID: "key", SecretAccessKey: "a secret of more than 14 bytes", SessionToken: "token"}
	signed := func(signer dynamodb.HTTPSignerV4) http.Header {
		r := &http.Request{
			Method: http.MethodPost,
			URL:    &url.URL{Scheme: "https", Host: "dynamodb.us-east-1.amazonaws.com", Path: "/"},
			Header: http.Header{
				"Accept-Encoding": {"identity"}, "Content-Type": {"type"}, "User-Agent": {"agent"}, "X-Amz-Target": {"target"},
				"X-Amzn-Trace-Id": {"trace"},
			},
			ContentLength: 2,
		}
		err := signer.SignHTTP(context.Background(), credentials, r, "hash", "dynamodb", "us-east-1", time.Unix(0, 0),
			func(o *v4.SignerOptions) { o.LogSigning = false }) // which the client sets too
		if err != nil {
			return nil
		}
		return r.Header
	}
	want := signed(sdk)
	return want != nil && maps.EqualFunc(want, signed(&signer{sdk: v4.NewSigner()}), slices.Equal)
}

// SignHTTP implements dynamodb.HTTPSignerV4.
func (s *signer) SignHTTP(
	ctx context.Context, credentials aws.Credentials, r *http.Request, payloadHash, service, region string, at time.Time,
	optFns ...func(*v4.SignerOptions),
) error {
	delete(r.Header, attemptHeader) // of this attempt's copy
	var options v4.SignerOptions
	for _, fn := range optFns {
		fn(&options)
	}
	if options.LogSigning || options.DisableSessionToken || !s.sign(credentials, r, payloadHash, service, region, at.UTC()) {
		return s.sdk.SignHTTP(ctx, credentials, r, payloadHash, service, region, at, optFns...)
	}
	return nil
}

// sign signs r, or reports false if r has another form than it knows. It sets the same headers as the SDK's signer, so
// that this can sign what it has left.
func (s *signer) sign(credentials aws.Credentials, r *http.Request, payloadHash, service, region string, at time.Time) bool {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	if r.URL.EscapedPath() != "/" || r.URL.Opaque != "" || r.URL.RawQuery != "" ||
		strings.HasSuffix(host, ":443") || strings.HasSuffix(host, ":80") || !plain(host) {
		return false
	}
	buffer := signingBuffers.Get().(*signingBuffer)
	defer signingBuffers.Put(buffer)
	b := at.AppendFormat(buffer.bytes[:0], signingTime)
	values := []string{string(b), credentials.SessionToken, ""}
	r.Header[dateHeader] = values[0:1:1]
	if credentials.SessionToken != "" {
		r.Header[tokenHeader] = values[1:2:2]
	}

	// The canonical request.
	b = append(append(b[:0], r.Method...), "\n/\n\n"...)
	names := buffer.names[:0]
	known := 0
	for _, h := range &signedHeaders {
		start := len(b)
		b = append(append(b, h.name...), ':')
		switch h.name {
		case "host":
			b = append(b, host...)
		case "content-length":
			if r.ContentLength <= 0 {
				b = b[:start]
				continue
			}
			b = strconv.AppendInt(b, r.ContentLength, 10)
		default:
			value, ok := r.Header[h.header]
			if !ok {
				b = b[:start]
				continue
			}
			if len(value) != 1 || !plain(value[0]) {
				return false
			}
			known++
			b = append(b, value[0]...)
		}
		b = append(b, '\n')
		names = append(append(names, h.name...), ';')
	}
	for _, header := range &unsignedHeaders {
		if _, ok := r.Header[header]; ok {
			known++
		}
	}
	if known != len(r.Header) {
		return false
	}
	names = names[:len(names)-1]
	b = append(append(append(append(b, '\n'), names...), '\n'), payloadHash...)
	digest := sha256.Sum256(b)

	// The string to sign.
	key := s.signingKey(credentials, service, region, values[0][:len(signingDay)])
	b = append(append(append(append(b[:0], signingAlgorithm+"\n"...), values[0]...), '\n'), key.scope...)
	b = hex.AppendEncode(append(b, '\n'), digest[:])
	sum := key.sum(buffer.sum[:0], b)

	b = append(append(append(append(b[:0], signingAlgorithm+" Credential="...), key.accessKey...), '/'), key.scope...)
	b = append(append(append(b, ", SignedHeaders="...), names...), ", Signature="...)
	b = hex.AppendEncode(b, sum)
	values[2] = string(b)
	r.Header["Authorization"] = values[2:3:3]
	buffer.bytes, buffer.names = b, names
	return true
}

// plain reports whether a header's value is its own canonical form.
func plain(value string) bool {
	return strings.IndexByte(value, ' ') < 0 && strings.TrimSpace(value) == value
}

// signingBuffer is what one signature needs.
type signingBuffer struct {
	bytes, names []byte
	sum          [sha256.Size]byte
}

var signingBuffers = sync.Pool{New: func() any { return new(signingBuffer) }}

// signingKey is the key for one day, of one set of credentials.
type signingKey struct {
	accessKey, secretKey, service, region, day string

	scope string
	macs  sync.Pool // of hash.Hash
}

// signingKey returns the key for these, which changes once a day and with the credentials.
func (s *signer) signingKey(credentials aws.Credentials, service, region, day string) *signingKey {
	if k := s.key.Load(); k != nil && k.day == day && k.accessKey == credentials.AccessKeyID &&
		k.secretKey == credentials.SecretAccessKey && k.service == service && k.region == region {
		return k
	}
	derived := []byte("AWS4" + credentials.SecretAccessKey)
	for _, part := range []string{day, region, service, "aws4_request"} {
		mac := hmac.New(sha256.New, derived)
		mac.Write([]byte(part))
		derived = mac.Sum(nil)
	}
	k := &signingKey{
		accessKey: credentials.AccessKeyID, secretKey: credentials.SecretAccessKey, service: service, region: region,
		day:   strings.Clone(day), // day is a part of a request's header
		scope: day + "/" + region + "/" + service + "/aws4_request",
	}
	k.macs.New = func() any { return hmac.New(sha256.New, derived) }
	s.key.Store(k)
	return k
}

// sum appends the signature of message to b.
func (k *signingKey) sum(b, message []byte) []byte {
	mac := k.macs.Get().(hash.Hash)
	defer k.macs.Put(mac)
	mac.Reset()
	mac.Write(message)
	return mac.Sum(b)
}
