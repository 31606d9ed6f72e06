package batch

import (
	"testing"

	"pgregory.net/rapid"
)

// index is a map from names to the record that was filled in last.
func TestIndexAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 5, -1), 0, 200).Draw(t, "names")
		x := index{name: func(i int32) string { return names[i] }}
		model := map[string]int32{}
		for i, name := range names {
			s := x.find(name, len(names))
			if got, want := s.record-1, model[name]-1; got != want {
				t.Fatalf("find(%q) = %d, want %d", name, got, want)
			}
			if rapid.Bool().Draw(t, "fill") {
				s.record = int32(i + 1)
				model[name] = s.record
			}
		}
	})
}
