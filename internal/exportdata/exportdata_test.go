package exportdata

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoad(t *testing.T) {
	const none = "github.com/oncekit/oncekit/none"
	packages, err := Load("go/types", "math/rand/v2", none)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"go/types", "math/rand/v2", none}, packages.Matched); diff != "" {
		t.Errorf("Matched (-want +got):\n%s", diff)
	}
	if got := packages.Name("math/rand/v2"); got != "rand" {
		t.Errorf("Name: %q, want rand", got)
	}
	for _, importPath := range []string{"go/types", "go/token", "unsafe"} {
		if pkg, err := packages.Import(importPath); err != nil || pkg.Path() != importPath {
			t.Errorf("Import(%s) = %v, %v; want the package", importPath, pkg, err)
		}
	}
	if pkg, err := packages.Import("go/types"); err == nil && pkg.Scope().Lookup("Checker") == nil {
		t.Errorf("go/types has no Checker")
	}
	if _, err := packages.Import(none); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("Import of a package that does not exist: error %v, want one that names it", err)
	}
}
