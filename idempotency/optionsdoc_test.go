package idempotency_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
)

// Every option has a line in the table of options.
func TestOptionsAreDocumented(t *testing.T) {
	const path = "../docs/idempotency.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for prefix, options := range map[string]any{
		"": idempotency.Options{}, "CallOptions.": idempotency.CallOptions{}, "WrapOptions.": idempotency.WrapOptions[int, int]{},
	} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(options)) {
			if !field.IsExported() {
				continue
			}
			if !field.IsExported() {
				continue
			}
			name := "`" + prefix + field.Name + "`"
			row := func(line string) bool {
				cells := strings.Split(line, "|")
				return len(cells) > 4 && strings.Contains(cells[1], name) && strings.TrimSpace(cells[2]) != ""
			}
			found := false
			for line := range strings.Lines(string(page)) {
				found = found || row(line)
			}
			if !found {
				t.Errorf("%s has no row for the option %s, want one with its name and its default", path, name)
			}
		}
	}
}
