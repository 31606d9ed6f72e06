package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/oncekit/oncekit"

// goPackage is what go list tells of a package; tests and their imports are not part of it.
type goPackage struct {
	ImportPath string
	Name       string
	Standard   bool
	Imports    []string // direct
	Deps       []string // direct and through others
}

// Imports that every package of the library may have, besides the standard library and the library itself.
var light = []string{
	"github.com/aws/aws-lambda-go/events",
	"github.com/go-json-experiment/json",
	"golang.org/x/sync/errgroup",
}

// Imports that test kits may have besides.
var kits = []string{
	"github.com/google/go-cmp/cmp",
	"pgregory.net/rapid",
}

// The AWS SDK's clients, without the package config: that one reads files and environment variables and brings
// credential providers along, which is the user's choice to make.
var awsSDK = []string{
	"github.com/aws/aws-sdk-go-v2",
	"github.com/aws/smithy-go",
}

var awsConfig = []string{
	"github.com/aws/aws-sdk-go-v2/config",
	"github.com/aws/aws-sdk-go-v2/credentials",
}

// attributeValues are the SDK's rules for decoding items, and the types of attributes, without a client.
var attributeValues = []string{
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue",
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas",
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types",
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/schemas",
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types",
	"github.com/aws/smithy-go",
}

// heavy lists the leaf packages that may import more than light. They are leaves: nothing in the library imports them.
var heavy = map[string][]string{
	module + "/deadletter":                           awsSDK,
	module + "/idempotency/dynamostore":              awsSDK,
	module + "/idempotency/jmespath":                 {"github.com/jmespath-community/go-jmespath", "golang.org/x/exp/constraints"},
	module + "/idempotency/redisstore/goredisclient": {"github.com/redis/go-redis/v9", "github.com/cespare/xxhash/v2", "github.com/dgryski/go-rendezvous", "go.uber.org/atomic", "golang.org/x/sys"},
	module + "/idempotency/redisstore/rueidisclient": {"github.com/redis/rueidis", "golang.org/x/sys"},
	module + "/sources/dynamodbstream":               attributeValues,
}

func TestImports(t *testing.T) {
	packages := listPackages(t)
	for _, complaint := range checkImports(packages) {
		t.Error(complaint)
	}
	for _, pkg := range []string{
		"/batch", "/deadletter", "/idempotency", "/idempotency/dynamostore", "/idempotency/watermark", "/sources/dynamodbstream",
		"/sources/internal/pipeline", "/sources/internal/stream", "/sources/kinesis", "/sources/sqs",
	} {
		if !slices.ContainsFunc(packages, func(p goPackage) bool { return p.ImportPath == module+pkg }) {
			t.Errorf("go list does not know %s%s, so no rule holds for it", module, pkg)
		}
	}
}

// checkImports returns what is wrong with the imports of the packages, a sentence each. The packages are all that the
// module consists of and imports.
func checkImports(packages []goPackage) []string {
	standard := map[string]bool{}
	for _, p := range packages {
		standard[p.ImportPath] = p.Standard
	}
	var complaints []string
	for _, p := range packages {
		if !isLibrary(p.ImportPath) {
			continue
		}
		complain := func(imported, rule string) {
			complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, rule))
		}
		for _, imported := range p.Deps {
			switch {
			case within(imported, awsConfig...):
				complain(imported, "the AWS SDK's configuration is the user's")
			case !standard[imported] && !within(imported, module) && !within(imported, light...) &&
				!within(imported, heavy[p.ImportPath]...) && !(isTestKit(p.ImportPath) && within(imported, kits...)):
				complain(imported, "only leaf packages have heavy imports")
			case heavy[imported] != nil:
				complain(imported, "nothing in the library imports a leaf")
			case imported == "testing" && !isTestKit(p.ImportPath):
				complain(imported, "only test kits, named ...test, import testing")
			}
		}
		for _, imported := range p.Imports {
			if rule := betweenOurs(p.ImportPath, imported); rule != "" {
				complain(imported, rule)
			}
		}
		if rule := knowsBoth(p); rule != "" {
			complaints = append(complaints, fmt.Sprintf("%s imports batch and idempotency: %s", p.ImportPath, rule))
		}
	}
	return complaints
}

// betweenOurs returns the rule that forbids one package of the library to import another one directly, or "". Since
// the rules hold for every package, they hold for what is imported through others.
func betweenOurs(from, imported string) string {
	const batch, idempotency, sources = module + "/batch", module + "/idempotency", module + "/sources"
	switch {
	case !isTestKit(from) && within(imported, module) && isTestKit(imported):
		return "test kits are for tests"
	case within(from, sources) && isTestKit(from) && within(imported, sources+"/lambdatest", sources+"/shardtest"):
		return "" // it is what the kits of all sources share
	case within(from, batch) && within(imported, idempotency), within(from, idempotency) && within(imported, batch):
		return "batch and idempotency do not know each other"
	case within(from, batch, idempotency) && within(imported, sources):
		return "the core does not know its sources"
	case within(from, sources+"/internal") && within(imported, sources) && !within(imported, sources+"/internal"):
		return "what sources share knows none of them"
	case within(from, sources) && within(imported, sources) && !within(imported, sources+"/internal") &&
		source(from) != source(imported):
		return "sources do not know each other"
	}
	return ""
}

// knowsBoth returns the rule against a package that joins batch and idempotency and is no source, or "".
func knowsBoth(p goPackage) string {
	joins := slices.Contains(p.Imports, module+"/batch") && slices.Contains(p.Imports, module+"/idempotency")
	if joins && !within(p.ImportPath, module+"/sources") {
		return "only sources and what they share join the two"
	}
	return ""
}

// isLibrary reports whether users get the package: it is ours, and not an example, a command or for our tests alone.
func isLibrary(importPath string) bool {
	return within(importPath, module) && !within(importPath, module+"/examples", module+"/cmd", module+"/internal")
}

// isTestKit reports whether the package is a test kit such as sqs/sqstest, or belongs to one.
func isTestKit(importPath string) bool {
	return slices.ContainsFunc(strings.Split(importPath, "/"), func(element string) bool {
		return strings.HasSuffix(element, "test")
	})
}

// source returns the first element of the path below sources/, such as "sqs".
func source(importPath string) string {
	rest := strings.TrimPrefix(importPath, module+"/sources/")
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// within reports whether the package is one of those at the paths or below them.
func within(importPath string, paths ...string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return importPath == p || strings.HasPrefix(importPath, p+"/")
	})
}

// listPackages returns all packages of the module, and all that they import.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Standard,Imports,Deps", module+"/...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", list, err, stderr.String())
	}
	var packages []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// TestCheckImports breaks every rule once.
func TestCheckImports(t *testing.T) {
	const (
		batch       = module + "/batch"
		idempotency = module + "/idempotency"
		dynamostore = module + "/idempotency/dynamostore"
		pipeline    = module + "/sources/internal/pipeline"
		sqs         = module + "/sources/sqs"
		kinesis     = module + "/sources/kinesis"
		sqstest     = module + "/sources/sqs/sqstest"
		lambdatest  = module + "/sources/lambdatest"
		shardtest   = module + "/sources/shardtest"
		dynamodb    = "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	)
	std := []goPackage{{ImportPath: "context", Standard: true}, {ImportPath: "testing", Standard: true}}
	direct := func(from string, imports ...string) goPackage {
		return goPackage{ImportPath: from, Imports: imports, Deps: imports}
	}
	indirect := func(from string, deps ...string) goPackage { return goPackage{ImportPath: from, Deps: deps} }

	for _, test := range []struct {
		name string
		pkg  goPackage
		want []string
	}{
		{name: "core", pkg: direct(batch, "context", "golang.org/x/sync/errgroup")},
		{name: "JSON subpackage", pkg: direct(sqs, "github.com/go-json-experiment/json/jsontext")},
		{name: "source", pkg: direct(sqs, batch, idempotency, pipeline, "github.com/aws/aws-lambda-go/events")},
		{name: "source through another package", pkg: indirect(sqs, batch, kinesis)},
		{name: "joint", pkg: direct(pipeline, batch, idempotency)},
		{name: "test kit", pkg: direct(sqstest, sqs, batch, "testing", "github.com/google/go-cmp/cmp")},
		{name: "what test kits share", pkg: direct(lambdatest, idempotency, "context")},
		{name: "test kit uses what test kits share", pkg: direct(sqstest, sqs, lambdatest)},
		{name: "test kit uses shards in memory", pkg: direct(module+"/sources/kinesis/kinesistest", shardtest)},
		{name: "what test kits share uses another", pkg: direct(shardtest, lambdatest)},
		{name: "inside a test kit", pkg: direct(module+"/idempotency/storetest/internal/broken", idempotency, "testing")},
		{name: "leaf", pkg: direct(dynamostore, idempotency, dynamodb, "github.com/aws/smithy-go")},
		{name: "example", pkg: direct(module+"/examples/orders", sqs, kinesis, sqstest, batch, idempotency, dynamostore,
			"github.com/aws/aws-sdk-go-v2/config")},
		{name: "not ours", pkg: direct("github.com/aws/aws-sdk-go-v2/config", dynamodb)},

		{
			name: "batch knows idempotency", pkg: direct(batch, idempotency),
			want: []string{batch + " imports " + idempotency + ": batch and idempotency do not know each other"},
		},
		{
			name: "store knows batch", pkg: direct(dynamostore, batch),
			want: []string{dynamostore + " imports " + batch + ": batch and idempotency do not know each other"},
		},
		{
			name: "core knows a source", pkg: direct(idempotency, sqs),
			want: []string{idempotency + " imports " + sqs + ": the core does not know its sources"},
		},
		{
			name: "joint knows a source", pkg: direct(pipeline, sqs),
			want: []string{pipeline + " imports " + sqs + ": what sources share knows none of them"},
		},
		{
			name: "source knows a source", pkg: direct(sqs, kinesis),
			want: []string{sqs + " imports " + kinesis + ": sources do not know each other"},
		},
		{
			name: "test kit knows another source", pkg: direct(sqstest, kinesis),
			want: []string{sqstest + " imports " + kinesis + ": sources do not know each other"},
		},
		{
			name: "source uses a test kit", pkg: direct(sqs, sqstest),
			want: []string{sqs + " imports " + sqstest + ": test kits are for tests"},
		},
		{
			name: "source uses what test kits share", pkg: direct(sqs, lambdatest),
			want: []string{sqs + " imports " + lambdatest + ": test kits are for tests"},
		},
		{
			name: "joint uses what test kits share", pkg: direct(pipeline, lambdatest),
			want: []string{pipeline + " imports " + lambdatest + ": test kits are for tests"},
		},
		{
			name: "source uses shards in memory", pkg: direct(kinesis, shardtest),
			want: []string{kinesis + " imports " + shardtest + ": test kits are for tests"},
		},
		{
			name: "what test kits share knows a source", pkg: direct(lambdatest, sqs),
			want: []string{lambdatest + " imports " + sqs + ": sources do not know each other"},
		},
		{
			name: "kit of the core uses what test kits of sources share", pkg: direct(module+"/idempotency/storetest", lambdatest),
			want: []string{module + "/idempotency/storetest imports " + lambdatest + ": the core does not know its sources"},
		},
		{
			name: "testing in the library", pkg: indirect(idempotency, "testing"),
			want: []string{idempotency + " imports testing: only test kits, named ...test, import testing"},
		},
		{
			name: "SDK in the core", pkg: indirect(idempotency, dynamodb),
			want: []string{idempotency + " imports " + dynamodb + ": only leaf packages have heavy imports"},
		},
		{
			name: "name that only begins like a light one", pkg: direct(sqs, "github.com/go-json-experiment/json2"),
			want: []string{sqs + " imports github.com/go-json-experiment/json2: only leaf packages have heavy imports"},
		},
		{
			name: "go-cmp outside a test kit", pkg: direct(sqs, "github.com/google/go-cmp/cmp"),
			want: []string{sqs + " imports github.com/google/go-cmp/cmp: only leaf packages have heavy imports"},
		},
		{
			name: "all of aws-lambda-go", pkg: direct(sqs, "github.com/aws/aws-lambda-go/lambda"),
			want: []string{sqs + " imports github.com/aws/aws-lambda-go/lambda: only leaf packages have heavy imports"},
		},
		{
			name: "source uses a leaf", pkg: indirect(sqs, dynamostore),
			want: []string{sqs + " imports " + dynamostore + ": nothing in the library imports a leaf"},
		},
		{
			name: "leaf reads the configuration", pkg: indirect(dynamostore, "github.com/aws/aws-sdk-go-v2/config"),
			want: []string{dynamostore + " imports github.com/aws/aws-sdk-go-v2/config: the AWS SDK's configuration is the user's"},
		},
		{
			name: "third joint", pkg: direct(module+"/metrics", batch, idempotency),
			want: []string{module + "/metrics imports batch and idempotency: only sources and what they share join the two"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, checkImports(append(std, test.pkg))); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}
