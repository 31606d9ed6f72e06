package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/internal/templatetest"
)

// template is the part of the SAM template that is held to something.
type template struct {
	Resources struct {
		Function templatetest.Function[route] `yaml:"PaymentsFunction"`
		API      struct {
			Type       string `yaml:"Type"`
			Properties struct {
				Auth struct {
					EnableIAM bool   `yaml:"EnableIamAuthorizer"`
					Default   string `yaml:"DefaultAuthorizer"`
				} `yaml:"Auth"`
			} `yaml:"Properties"`
		} `yaml:"PaymentsApi"`
		Table templatetest.Table `yaml:"IdempotencyTable"`
	} `yaml:"Resources"`
}

type route struct {
	API           templatetest.Reference `yaml:"ApiId"`
	Method        string                 `yaml:"Method"`
	Path          string                 `yaml:"Path"`
	PayloadFormat string                 `yaml:"PayloadFormatVersion"`
}

func readTemplate(t *testing.T) template {
	t.Helper()
	return templatetest.Read[template](t, "template.yaml")
}

// TestTemplateAPI holds the template to the events that the function reads, and to callers that have a name.
func TestTemplateAPI(t *testing.T) {
	resources := readTemplate(t).Resources
	want := map[string]templatetest.Event[route]{
		"Pay": {Type: "HttpApi", Properties: route{"!Ref PaymentsApi", "POST", "/payments", "2.0"}},
	}
	if diff := cmp.Diff(want, resources.Function.Properties.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if auth := resources.API.Properties.Auth; resources.API.Type != "AWS::Serverless::HttpApi" || !auth.EnableIAM ||
		auth.Default != "AWS_IAM" {
		t.Errorf("the API is %+v, want an AWS::Serverless::HttpApi for callers that AWS_IAM knows", resources.API)
	}
	// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html: an integration has 30 seconds.
	if timeout := resources.Function.Properties.Timeout; timeout < 1 || timeout >= 30 {
		t.Errorf("Timeout is %d s, want less than the 30 s for which the API waits", timeout)
	}
}

// TestTemplateFunction holds the function to how it is built, to what lambda/main.go reads, and to what dynamostore
// documents that it needs.
func TestTemplateFunction(t *testing.T) {
	function := readTemplate(t).Resources.Function
	templatetest.CheckFunction(t, function, map[string]templatetest.Reference{"TABLE_NAME": "!Ref IdempotencyTable"})
	templatetest.CheckPolicy(t, function,
		templatetest.TableStatement(t, "../../idempotency/dynamostore", "!GetAtt IdempotencyTable.Arn"))
}

func TestTemplateTable(t *testing.T) { templatetest.CheckTable(t, readTemplate(t).Resources.Table) }
