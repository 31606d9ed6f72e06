package snippettest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// documents returns the blocks of the README, the changelog, and what is in docs/.
func documents(t *testing.T) []block {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, file := range append(docs, filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, markdownBlocks(filepath.ToSlash(name), string(text))...)
	}
	return blocks
}

func TestDocumentsCompile(t *testing.T) {
	blocks := documents(t)
	inReadme := 0
	for _, b := range blocks {
		if b.file == "README.md" && b.language == "go" {
			inReadme++
		}
	}
	if inReadme == 0 {
		t.Error("README.md has no block marked as go")
	}
	for _, complaint := range compileBlocks(t, blocks) {
		t.Error(complaint)
	}
}

func TestDocCommentsCompile(t *testing.T) {
	var blocks []block
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(base, ".") || base == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(base) != ".go" || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		found, err := docBlocks(name, source)
		blocks = append(blocks, found...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range compileBlocks(t, blocks) {
		t.Error(complaint)
	}
}

func TestDocumentsNameWhatExists(t *testing.T) {
	complaints, err := checkCommands(os.DirFS(root), documents(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range complaints {
		t.Error(complaint)
	}
}

func compileBlocks(t *testing.T, blocks []block) []string {
	t.Helper()
	snippets, err := newSnippets(blocks)
	if err != nil {
		t.Fatal(err)
	}
	known, err := knownPackages()
	if err != nil {
		t.Fatal(err)
	}
	complaints, err := compile(snippets, known)
	if err != nil {
		t.Fatal(err)
	}
	return complaints
}

func sampleBlocks(t *testing.T, name string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return markdownBlocks(name, string(text))
}

func TestGoodBlocks(t *testing.T) {
	blocks := sampleBlocks(t, "good.md")
	if diff := cmp.Diff([]string(nil), compileBlocks(t, blocks)); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
	if len(blocks) != 7 {
		t.Errorf("found %d blocks, want 7", len(blocks))
	}
}

func TestBadBlocks(t *testing.T) {
	want := []string{
		"bad.md:28: missing condition in if statement (and 1 more errors)",
		"bad.md:4: undefined: list",
		`bad.md:5: cannot use "seven" (untyped string constant) as int value in variable declaration`,
		"bad.md:9: undefined: nothing",
		"bad.md:15: missing return",
		"bad.md:24: undefined: client",
		"bad.md:36: declared and not used: unused",
		`bad.md:34: "os" imported and not used`,
		"bad.md:40: could not import github.com/oncekit/oncekit/none (package github.com/oncekit/oncekit/none does not exist or does not compile)",
		"bad.md:46: undefined: rand",
		"bad.md:54: x.y undefined (type int has no field or method y)",
	}
	if diff := cmp.Diff(want, compileBlocks(t, sampleBlocks(t, "bad.md"))); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
}

func TestBlockThatCannotContinue(t *testing.T) {
	const continued = "<!-- go continued -->\n```go\nx++\n```\n"
	statement := markdownBlocks("a.md", "```go\nx := 1\n```\n")
	for name, blocks := range map[string][]block{
		"first of all":    markdownBlocks("b.md", continued),
		"first of a file": append(statement, markdownBlocks("b.md", continued)...),
		"after a program": markdownBlocks("b.md", "```go\npackage main\n```\n"+continued),
	} {
		if _, err := newSnippets(blocks); err == nil || !strings.Contains(err.Error(), "nothing before the block") {
			t.Errorf("%s: error %v, want one that says so", name, err)
		}
	}
}

func TestDocBlocks(t *testing.T) {
	const source = `// Package a is explained:
//
//	fmt.Println(client + 1)
//
// and:
//
//	func f() { client.none() }
//
//snippet:go
//snippet:go var client int
package a

// B is not compiled:
//
//	go go go
type B int

// C is:
//
//	go go go
//
//snippet:go
type C int
`
	if _, err := parser.ParseFile(token.NewFileSet(), "", source, 0); err != nil {
		t.Fatal(err)
	}
	blocks, err := docBlocks("a.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a.go:20: expected operand, found 'go' (and 1 more errors)",
		"a.go:7: client.none undefined (type int has no field or method none)",
	}
	if diff := cmp.Diff(want, compileBlocks(t, blocks)); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
}

func TestCheckCommands(t *testing.T) {
	root := fstest.MapFS{
		"Makefile":                {Data: []byte("COUNT := 6\n\ntest: fmt\n\ttrue\n")},
		"examples/example.go":     {Data: []byte("package examples\n")},
		"examples/orders/main.go": {Data: []byte("// A program.\npackage main\n")},
	}
	got, err := checkCommands(root, sampleBlocks(t, "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"commands.md:3: the Makefile has no target tests",
		"commands.md:4: the Makefile has no target nope",
		"commands.md:5: ./examples is not a program",
		"commands.md:5: ./examples/none.json does not exist",
		"commands.md:6: ./examples/none does not exist",
		"commands.md:9: github.com/oncekit/oncekit/cmd/none@latest does not exist",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
}
