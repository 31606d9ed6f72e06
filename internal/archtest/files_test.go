package archtest

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// maxLines is how long a Go file may be that is no test. One noun a file needs no more.
const maxLines = 400

// vague are package names that say nothing about what is in the package.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"}

func TestFiles(t *testing.T) {
	root := os.DirFS("../..")
	complaints, files, err := checkFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range complaints {
		t.Error(complaint)
	}
	if files < 10 {
		t.Errorf("found %d Go files in the module; this looks in the wrong place", files)
	}
}

// checkFiles returns what is wrong with the Go files of the module at root, a sentence each, and how many it looked at.
func checkFiles(root fs.FS) (complaints []string, files int, err error) {
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata") {
				return fs.SkipDir // the go command does not look there either
			}
			return nil
		}
		if path.Ext(base) != ".go" {
			return nil
		}
		files++
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		if pkg := strings.TrimSuffix(file.Name.Name, "_test"); slices.Contains(vague, pkg) {
			complaints = append(complaints, fmt.Sprintf("%s: package %s: name it for what is in it", name, pkg))
		}
		if lines := bytes.Count(source, []byte("\n")); lines > maxLines && !strings.HasSuffix(base, "_test.go") {
			complaints = append(complaints, fmt.Sprintf("%s has %d lines, more than %d: split it", name, lines, maxLines))
		}
		return nil
	})
	return complaints, files, err
}

func TestCheckFiles(t *testing.T) {
	file := func(pkg string, lines int) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package " + pkg + "\n" + strings.Repeat("\n", lines-1))}
	}
	complaints, files, err := checkFiles(fstest.MapFS{
		"batch/fits.go":            file("batch", maxLines),
		"batch/long.go":            file("batch", maxLines+1),
		"batch/long_test.go":       file("batch", maxLines+1),
		"batch/testdata/long.go":   file("batch", maxLines+1),
		".tools/long.go":           file("tools", maxLines+1),
		"internal/util/a.go":       file("util", 1),
		"internal/utility/a.go":    file("utility", 1),
		"internal/help/a_test.go":  file("helper_test", 1),
		"internal/help/a_test.txt": file("helper_test", 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"batch/long.go has 401 lines, more than 400: split it",
		"internal/help/a_test.go: package helper: name it for what is in it",
		"internal/util/a.go: package util: name it for what is in it",
	}
	if diff := cmp.Diff(want, complaints); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
	if files != 6 {
		t.Errorf("looked at %d files, want 6", files)
	}
}
