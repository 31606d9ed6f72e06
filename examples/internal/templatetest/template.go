// Package templatetest holds the SAM templates of the examples to what their functions need.
package templatetest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// Reference is a value such as !GetAtt OrdersQueue.Arn: the tag and what it is of. One without a tag of its own has that
// of YAML, such as "!!str".
type Reference string

// UnmarshalYAML keeps the tag, which stands for a call.
func (r *Reference) UnmarshalYAML(node *yaml.Node) error {
	*r = Reference(node.Tag + " " + node.Value)
	return nil
}

// Function is an AWS::Serverless::Function whose events have the properties E.
type Function[E any] struct {
	Type       string            `yaml:"Type"`
	Metadata   map[string]string `yaml:"Metadata"`
	Properties struct {
		CodeURI       string   `yaml:"CodeUri"`
		Handler       string   `yaml:"Handler"`
		Runtime       string   `yaml:"Runtime"`
		Architectures []string `yaml:"Architectures"`
		Timeout       int      `yaml:"Timeout"`
		Environment   struct {
			Variables map[string]Reference `yaml:"Variables"`
		} `yaml:"Environment"`
		Events   map[string]Event[E] `yaml:"Events"`
		Policies []struct {
			Statement []Statement `yaml:"Statement"`
		} `yaml:"Policies"`
	} `yaml:"Properties"`
}

// Event is an event source of a function.
type Event[E any] struct {
	Type       string `yaml:"Type"`
	Properties E      `yaml:"Properties"`
}

// Statement is one of an IAM policy.
type Statement struct {
	Effect   string    `yaml:"Effect"`
	Action   []string  `yaml:"Action"`
	Resource Reference `yaml:"Resource"`
}

// Read reads the template in the file. T is the part of it that is held to something.
func Read[T any](t *testing.T, file string) (template T) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	return template
}

// CheckFunction checks that a function is one that is built from lambda/ for Lambda on arm64, with this environment.
func CheckFunction[E any](t *testing.T, f Function[E], environment map[string]Reference) {
	t.Helper()
	p := f.Properties
	got := []string{f.Type, p.Runtime, p.Handler, p.CodeURI, f.Metadata["BuildMethod"], strings.Join(p.Architectures, " ")}
	want := []string{"AWS::Serverless::Function", "provided.al2023", "bootstrap", "lambda/", "go1.x", "arm64"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("type, runtime, handler, code, build method, architecture (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(environment, p.Environment.Variables); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// CheckPolicy checks that the function's own policies allow what the statements say, and nothing else. The actions are
// in any order.
func CheckPolicy[E any](t *testing.T, f Function[E], want ...Statement) {
	t.Helper()
	policies := f.Properties.Policies
	if len(policies) != 1 {
		t.Fatalf("the function has the policies %+v, want one", policies)
	}
	for _, statements := range [][]Statement{want, policies[0].Statement} {
		for _, s := range statements {
			slices.Sort(s.Action)
		}
	}
	if diff := cmp.Diff(want, policies[0].Statement); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}
