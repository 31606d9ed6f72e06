package snippettest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os/exec"
	"strconv"
	"strings"

	"github.com/oncekit/oncekit/internal/exportdata"
)

const module = "github.com/oncekit/oncekit"

// wellKnown are packages of others that blocks may use without an import, as they may use ours.
var wellKnown = []string{
	"github.com/aws/aws-lambda-go/events",
	"github.com/aws/aws-lambda-go/lambda",
	"github.com/aws/aws-sdk-go-v2/aws",
	"github.com/aws/aws-sdk-go-v2/config",
	"github.com/aws/aws-sdk-go-v2/service/dynamodb",
}

// knownPackages returns the packages that blocks may use without an import, a path by name. Where two of the standard
// library have one name, such as text/template and html/template, a block has to say which one it means; ours win over
// the standard library's.
func knownPackages() (map[string]string, error) {
	known := map[string]string{}
	standard, err := list("std")
	if err != nil {
		return nil, err
	}
	for importPath, name := range standard {
		if strings.Contains("/"+importPath+"/", "/internal/") || strings.HasPrefix(importPath, "vendor/") {
			continue
		}
		if _, twice := known[name]; twice {
			known[name] = ""
			continue
		}
		known[name] = importPath
	}
	for _, importPath := range wellKnown {
		known[importPath[strings.LastIndexByte(importPath, '/')+1:]] = importPath
	}
	ours, err := list(module + "/...")
	if err != nil {
		return nil, err
	}
	for importPath, name := range ours {
		if name != "main" && !strings.Contains(importPath+"/", "/internal/") {
			known[name] = importPath
		}
	}
	return known, nil
}

// list returns the names of the packages that match the pattern, by path.
func list(pattern string) (map[string]string, error) {
	command := exec.Command("go", "list", "-e", "-f", "{{.ImportPath}} {{.Name}}", pattern)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", command, err, stderr.String())
	}
	names := map[string]string{}
	for line := range strings.Lines(string(out)) {
		importPath, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		names[importPath] = name
	}
	return names, nil
}

// compile type-checks the snippets and returns what is wrong with them, each with its file and line.
func compile(snippets []*snippet, known map[string]string) ([]string, error) {
	var (
		fset       = token.NewFileSet()
		complaints []string
		files      = map[*snippet]*ast.File{}
		imports    []string
	)
	for _, s := range snippets {
		file, err := s.parse(fset, known)
		if err != nil {
			complaints = append(complaints, err.Error())
			continue
		}
		files[s] = file
		for _, spec := range file.Imports {
			importPath, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, err
			}
			imports = append(imports, importPath)
		}
	}
	packages, err := exportdata.Load(append(imports, "errors")...) // with no pattern it would take the folder's package
	if err != nil {
		return nil, err
	}
	for _, s := range snippets {
		if files[s] == nil {
			continue
		}
		config := types.Config{
			Importer: packages,
			Error: func(err error) {
				e := err.(types.Error)
				if !e.Soft || s.complete { // soft: a variable or an import that is not used
					complaints = append(complaints, fmt.Sprintf("%s: %s", fset.Position(e.Pos), e.Msg))
				}
			},
		}
		_, _ = config.Check("snippet", fset, []*ast.File{files[s]}, nil) // its error was reported above
	}
	return complaints, nil
}
