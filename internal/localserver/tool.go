package localserver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Tool returns the path of a file that `make tools` installs below .tools/, named as in "bin/dynoxide". Where it is not
// installed, the test is skipped, or fails where the environment variable CI is set.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := find(name)
	if err != nil {
		missing(t, fmt.Errorf("localserver: %w", err))
	}
	return path
}

// missing ends a test that lacks a tool. In CI nothing may be skipped: a skip there would look like a success.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// find returns the path of a tool of the module that the working directory is in.
func find(name string) (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for root := start; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			path := filepath.Join(root, ".tools", filepath.FromSlash(name))
			if _, err := os.Stat(path); err != nil {
				return "", fmt.Errorf(".tools/%s is not installed (%w): run `make tools`", name, err)
			}
			return path, nil
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("no go.mod in %s or above it, so no .tools/%s: run the tests inside the module", start, name)
		}
	}
}
