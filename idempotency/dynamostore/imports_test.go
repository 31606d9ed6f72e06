package dynamostore_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImports keeps out what loads configuration: that is the caller's, and it costs a cold start some milliseconds.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 100 {
		t.Fatalf("%d packages; want all that the SDK's client brings", len(deps))
	}
	for _, dep := range deps {
		for _, unwanted := range []string{"aws-sdk-go-v2/config", "aws-sdk-go-v2/feature/", "aws-sdk-go-v2/credentials"} {
			if strings.Contains(dep, unwanted) {
				t.Errorf("the package depends on %s", dep)
			}
		}
	}
}
