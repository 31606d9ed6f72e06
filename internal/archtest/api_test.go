package archtest

import (
	"fmt"
	"go/types"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/internal/exportdata"
)

// jsonPackage moves into the standard library as encoding/json/v2. Were it in our API, that would break users.
const jsonPackage = "github.com/go-json-experiment/json"

func TestAPIHidesJSONPackage(t *testing.T) {
	checked := 0
	for _, pkg := range loadTypes(t, module+"/...") {
		if isLibrary(pkg.Path()) {
			checked++
			for _, complaint := range checkAPI(pkg) {
				t.Error(complaint)
			}
		}
	}
	if checked == 0 {
		t.Error("found no package of the library")
	}
}

// checkAPI returns what of the JSON package shows in the package's API, a sentence each.
func checkAPI(pkg *types.Package) []string {
	var complaints []string
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		s := search{pkg: pkg, seen: map[types.Type]bool{}}
		if found := s.find(object.Type()); found != "" {
			complaints = append(complaints, fmt.Sprintf("%s.%s shows %s", pkg.Path(), name, found))
		}
	}
	return complaints
}

// search looks for types of the JSON package in what a package exports.
type search struct {
	pkg  *types.Package
	seen map[types.Type]bool
}

// find returns the first type of the JSON package that is found in t, or "".
func (s *search) find(t types.Type) string {
	if s.seen[t] {
		return ""
	}
	s.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		return s.first(ofJSON(t.Obj()), s.find(t.Rhs()))
	case *types.Named:
		return s.named(t)
	case *types.TypeParam:
		return s.find(t.Constraint())
	case *types.Signature:
		return s.first(s.typeParameters(t.TypeParams()), s.find(t.Params()), s.find(t.Results()))
	case *types.Tuple:
		for v := range t.Variables() {
			if found := s.find(v.Type()); found != "" {
				return found
			}
		}
	case *types.Struct:
		for field := range t.Fields() {
			// The fields and methods of an embedded struct show even if its name does not.
			if field.Exported() || field.Embedded() {
				if found := s.find(field.Type()); found != "" {
					return found
				}
			}
		}
	case *types.Interface:
		for i := range t.NumEmbeddeds() {
			if found := s.find(t.EmbeddedType(i)); found != "" {
				return found
			}
		}
		for method := range t.ExplicitMethods() {
			if found := s.find(method.Type()); method.Exported() && found != "" {
				return found
			}
		}
	case *types.Union:
		for term := range t.Terms() {
			if found := s.find(term.Type()); found != "" {
				return found
			}
		}
	case *types.Map:
		return s.first(s.find(t.Key()), s.find(t.Elem()))
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		return s.find(t.Elem())
	}
	return ""
}

// named looks at a type's own name, its type arguments and, if it is the package's own, at what it consists of. What
// other packages' types consist of is their business.
func (s *search) named(t *types.Named) string {
	if found := ofJSON(t.Obj()); found != "" {
		return found
	}
	for argument := range t.TypeArgs().Types() {
		if found := s.find(argument); found != "" {
			return found
		}
	}
	if t.Obj().Pkg() != s.pkg {
		return ""
	}
	for method := range t.Methods() {
		if method.Exported() {
			if found := s.find(method.Type()); found != "" {
				return found
			}
		}
	}
	return s.first(s.typeParameters(t.TypeParams()), s.find(t.Underlying()))
}

// ofJSON returns the name's path if the JSON package declares it, or "".
func ofJSON(name *types.TypeName) string {
	if name.Pkg() == nil || !within(name.Pkg().Path(), jsonPackage) {
		return ""
	}
	return name.Pkg().Path() + "." + name.Name()
}

func (s *search) typeParameters(list *types.TypeParamList) string {
	for parameter := range list.TypeParams() {
		if found := s.find(parameter); found != "" {
			return found
		}
	}
	return ""
}

func (*search) first(found ...string) string {
	for _, f := range found {
		if f != "" {
			return f
		}
	}
	return ""
}

func loadTypes(t *testing.T, pattern string) []*types.Package {
	t.Helper()
	compiled, err := exportdata.Load(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var packages []*types.Package
	for _, importPath := range compiled.Matched {
		pkg, err := compiled.Import(importPath)
		if err != nil {
			t.Error(err)
			continue
		}
		packages = append(packages, pkg)
	}
	return packages
}

func TestCheckAPI(t *testing.T) {
	packages := loadTypes(t, "./testdata/api")
	if len(packages) != 1 {
		t.Fatalf("found %d packages, want 1", len(packages))
	}
	const (
		api     = module + "/internal/archtest/testdata/api"
		options = jsonPackage + ".Options"
		text    = jsonPackage + "/jsontext."
	)
	want := []string{
		api + ".Alias shows " + options,
		api + ".Constraint shows " + options,
		api + ".Embeds shows " + text + "Value",
		api + ".Inside shows " + text + "Value",
		api + ".Interface shows " + text + "Decoder",
		api + ".Parameter shows " + options,
		api + ".Sequence shows " + text + "Token",
		api + ".Struct shows " + text + "Value",
		api + ".Variable shows " + text + "Value",
	}
	if diff := cmp.Diff(want, checkAPI(packages[0])); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
}
