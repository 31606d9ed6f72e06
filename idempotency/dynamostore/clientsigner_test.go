package dynamostore_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency/dynamostore"
)

// signers returns the signer of ClientOptions and the SDK's.
func signers() (ours, sdk dynamodb.HTTPSignerV4) {
	o := dynamodb.Options{HTTPSignerV4: v4.NewSigner()}
	dynamostore.ClientOptions(&o)
	return o.HTTPSignerV4, v4.NewSigner()
}

// signing is a request and what it is signed with.
type signing struct {
	credentials                          aws.Credentials
	method, url, host                    string
	header                               http.Header
	contentLength                        int64
	payloadHash, service, region         string
	at                                   time.Time
	disableSessionToken, disableEscaping bool
}

func usual() signing {
	return signing{
		credentials: aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "token"},
		method:      "POST",
		url:         "https://dynamodb.us-east-1.amazonaws.com/",
		header: http.Header{
			"Accept-Encoding": {"identity"}, "Content-Type": {"application/x-amz-json-1.0"},
			"User-Agent": {"aws-sdk-go-v2/1 m/E,e"}, "X-Amz-Target": {"DynamoDB_20120810.PutItem"},
			"X-Amzn-Trace-Id": {"Root=1-2;Parent=3"},
		},
		contentLength: 2,
		payloadHash:   strings.Repeat("ab", 32),
		service:       "dynamodb",
		region:        "us-east-1",
		at:            time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	}
}

// sign returns what is sent: the headers, the host and the URL.
func (s signing) sign(signer dynamodb.HTTPSignerV4) (map[string]any, error) {
	r, err := http.NewRequest(s.method, s.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header = s.header.Clone()
	r.Host = s.host
	r.ContentLength = s.contentLength
	err = signer.SignHTTP(context.Background(), s.credentials, r, s.payloadHash, s.service, s.region, s.at,
		func(o *v4.SignerOptions) {
			o.DisableSessionToken = s.disableSessionToken
			o.DisableURIPathEscaping = s.disableEscaping
		})
	return map[string]any{"headers": r.Header, "host": r.Host, "URL": r.URL.String()}, err
}

// TestSignatures compares the signatures with those of the SDK's signer, for requests that differ from the usual in up to
// three ways. One signer signs all of them, so that a key that is out of date shows.
func TestSignatures(t *testing.T) {
	ours, _ := signers()
	rapid.Check(t, func(t *rapid.T) {
		value := func() string {
			return rapid.SampledFrom([]string{"", "a", "a b", " a", "a ", "a  b", "a\t", "ä", "A+/=", "x-y_z"}).Draw(t, "value")
		}
		one := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		ways := []func(*signing){
			// The SDK's signer knows a secret by its access key.
			func(s *signing) { s.credentials.AccessKeyID, s.credentials.SecretAccessKey = "OTHER", "other" },
			func(s *signing) { s.credentials.AccessKeyID, s.credentials.SecretAccessKey = "SAME", "secret" },
			func(s *signing) { s.credentials.SessionToken = value() },
			func(s *signing) { s.method = "GET" },
			func(s *signing) {
				s.url = one("URL", "http://127.0.0.1:8000/", "https://h:443/", "http://h:80/", "https://h:80/", "http://[::1]:8000/",
					"https://h", "https://h/a%2Fb", "https://h/?b=1&a=2", "https://h//", "https://h/%20")
			},
			func(s *signing) { s.host = one("host", "other.example", "h:443", "h:80") },
			func(s *signing) {
				delete(s.header, one("missing", "Accept-Encoding", "Content-Type", "User-Agent", "X-Amz-Target", "X-Amzn-Trace-Id"))
			},
			func(s *signing) {
				name := one("header", "Accept-Encoding", "accept-encoding", "Amz-Sdk-Invocation-Id", "Authorization",
					"Content-Length", "Expect", "X-Amz-Date", "X-Amz-Security-Token", "X-Custom", "x-custom")
				s.header[name] = append(s.header[name], value())
			},
			func(s *signing) {
				s.header[one("changed", "Accept-Encoding", "Content-Type", "User-Agent", "X-Amz-Target")] = []string{value()}
			},
			func(s *signing) {
				s.contentLength = rapid.SampledFrom([]int64{0, -1, 123456789}).Draw(t, "length")
			},
			func(s *signing) { s.payloadHash = "" },
			func(s *signing) { s.service = "other" },
			func(s *signing) { s.region = "eu-west-1" },
			func(s *signing) { s.at = s.at.Add(24 * time.Hour) },
			func(s *signing) { s.at = s.at.In(time.FixedZone("", -5*60*60)) },
			func(s *signing) { s.disableSessionToken = true },
			func(s *signing) { s.disableEscaping = true },
		}
		s := usual()
		for range rapid.IntRange(0, 3).Draw(t, "ways") {
			ways[rapid.IntRange(0, len(ways)-1).Draw(t, "way")](&s)
		}
		for name := range s.header {
			if canonical := http.CanonicalHeaderKey(name); canonical != name && len(s.header[canonical]) > 0 {
				t.Skip("the SDK signs two spellings of a name in the order of a map")
			}
		}
		want, wantErr := s.sign(v4.NewSigner()) // whose key is never out of date
		got, err := s.sign(ours)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("error is %v; want %v", err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", s, diff)
		}
	})
}

// TestSignatureOfUsualRequest checks that the usual requests are not left to the SDK's signer. That would show in nothing
// but its cost.
func TestSignatureOfUsualRequest(t *testing.T) {
	ours, sdk := signers()
	for name, change := range map[string]func(*signing){
		"usual":           func(*signing) {},
		"without a token": func(s *signing) { s.credentials.SessionToken = "" },
		"local":           func(s *signing) { s.url = "http://127.0.0.1:8000/" },
		"not in Lambda":   func(s *signing) { delete(s.header, "X-Amzn-Trace-Id") },
	} {
		s := usual()
		change(&s)
		cost := func(signer dynamodb.HTTPSignerV4) float64 {
			return testing.AllocsPerRun(100, func() {
				if _, err := s.sign(signer); err != nil {
					t.Fatal(err)
				}
			})
		}
		// What a test needs for itself is in both.
		if ours, sdk := cost(ours), cost(sdk); ours > sdk-20 {
			t.Errorf("%s: %v allocations; want at least 20 less than the SDK's %v", name, ours, sdk)
		}
	}
}

// TestSigningSecret changes the secret alone.
func TestSigningSecret(t *testing.T) {
	ours, _ := signers()
	for _, secret := range []string{"secret", "other", "secret"} {
		s := usual()
		s.credentials.SecretAccessKey = secret
		want, err := s.sign(v4.NewSigner())
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.sign(ours)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with the secret %q (-want +got):\n%s", secret, diff)
		}
	}
}

// TestAttemptHeader has the header that tells of attempts neither sent nor signed.
func TestAttemptHeader(t *testing.T) {
	ours, sdk := signers()
	s := usual()
	want, err := s.sign(sdk)
	if err != nil {
		t.Fatal(err)
	}
	s.header["Amz-Sdk-Request"] = []string{"attempt=1; max=4"}
	got, err := s.sign(ours)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

type userSigner struct{ err error }

func (s *userSigner) SignHTTP(
	context.Context, aws.Credentials, *http.Request, string, string, string, time.Time, ...func(*v4.SignerOptions),
) error {
	return s.err
}

// TestUserSigner has a signer of the user's left alone, also one that is the SDK's with options: they do not show.
func TestUserSigner(t *testing.T) {
	for name, want := range map[string]dynamodb.HTTPSignerV4{
		"user's":               &userSigner{errors.New("user's")},
		"SDK's with an option": v4.NewSigner(func(o *v4.SignerOptions) { o.DisableSessionToken = true }),
		"nil":                  (*v4.Signer)(nil),
	} {
		o := dynamodb.Options{HTTPSignerV4: want}
		dynamostore.ClientOptions(&o)
		if o.HTTPSignerV4 != want {
			t.Errorf("%s: the signer is %T; want the user's", name, o.HTTPSignerV4)
		}
	}
	// What a client logs is said again with each request.
	o := dynamodb.Options{HTTPSignerV4: v4.NewSigner(func(o *v4.SignerOptions) { o.LogSigning = true })}
	dynamostore.ClientOptions(&o)
	if _, ok := o.HTTPSignerV4.(*v4.Signer); ok {
		t.Error("a signer that differs in its log only is left alone; want it replaced")
	}
}
