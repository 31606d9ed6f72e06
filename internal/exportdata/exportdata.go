// Package exportdata reads the types of compiled packages, for tests that look at an API or type-check code against it.
package exportdata

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Packages holds packages that go list has compiled, with all that they import. It is a types.Importer.
type Packages struct {
	// Matched are the import paths of the packages that were asked for, commands excepted, in go list's order.
	Matched []string

	names    map[string]string // by import path
	files    map[string]string // of export data, by import path
	importer types.Importer
}

// Load compiles the packages that match the patterns, which are those of the go command. A package that does not exist
// or does not compile is no error here, but one when it is imported.
func Load(patterns ...string) (*Packages, error) {
	// A folder with nothing but tests is no package to import.
	const format = "{{if or .GoFiles (not (or .TestGoFiles .XTestGoFiles))}}" +
		"{{.ImportPath}}\t{{.Name}}\t{{.DepOnly}}\t{{.Export}}\n{{end}}"
	list := exec.Command("go", append([]string{"list", "-e", "-export", "-deps", "-f", format}, patterns...)...)
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", list, err, stderr.String())
	}
	p := &Packages{names: map[string]string{}, files: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		if line == "\n" {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		importPath, name, dependency, file := fields[0], fields[1], fields[2], fields[3]
		p.names[importPath], p.files[importPath] = name, file
		if dependency == "false" && name != "main" {
			p.Matched = append(p.Matched, importPath)
		}
	}
	p.importer = importer.ForCompiler(token.NewFileSet(), "gc", p.open)
	return p, nil
}

// Name returns the name of the package, or "".
func (p *Packages) Name(importPath string) string { return p.names[importPath] }

// Import returns the types of the package.
func (p *Packages) Import(importPath string) (*types.Package, error) {
	if importPath == "unsafe" {
		return types.Unsafe, nil
	}
	return p.importer.Import(importPath)
}

func (p *Packages) open(importPath string) (io.ReadCloser, error) {
	file := p.files[importPath]
	if file == "" {
		return nil, fmt.Errorf("package %s does not exist or does not compile", importPath)
	}
	return os.Open(file)
}
