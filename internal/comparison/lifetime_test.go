package main

import (
	"errors"
	"os"
	"slices"
	"testing"
)

func TestLive(t *testing.T) {
	var ended []string
	var folder string
	broken := errors.New("broken")
	for _, test := range []struct {
		name string
		end  func(testing.TB) error
		want string
	}{
		{"returns", func(testing.TB) error { return nil }, ""},
		{"returns an error", func(testing.TB) error { return broken }, "broken"},
		{"Fatal", func(t testing.TB) error { t.Fatal("no ", "server"); return nil }, "comparison: no server"},
		{"Fatalf", func(t testing.TB) error { t.Fatalf("no %s", "server"); return nil }, "comparison: no server"},
		{"Skip", func(t testing.TB) error { t.Skip("no tool"); return nil }, "comparison: no tool"},
		{
			"Errorf while it cleans up",
			func(t testing.TB) error { t.Cleanup(func() { t.Errorf("comparison: of a test") }); return nil },
			"comparison: could not clean up",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			ended = nil
			err := live(func(t testing.TB) error {
				t.Helper()
				folder = t.TempDir()
				t.Cleanup(func() { ended = append(ended, "first") })
				t.Cleanup(func() { ended = append(ended, "second") })
				return test.end(t)
			})
			if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("error is %v, want %q", err, test.want)
			}
			if !slices.Equal(ended, []string{"second", "first"}) {
				t.Errorf("cleanups ran in the order %v, want the last one first", ended)
			}
			if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder is still there (%v)", err)
			}
		})
	}
}
