package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// TestReport reports on the packages under testdata, each of which is bad in its own way, as go test runs them.
func TestReport(t *testing.T) {
	const module = "github.com/oncekit/oncekit/internal/testreport/testdata/"
	for _, test := range []struct {
		pkg      string
		ok, okCI bool
		said     []string
		unsaid   []string
	}{
		{
			pkg: "fails",
			said: []string{
				"    fails_test.go:8: two is not three\n",
				"FAIL\t" + module + "fails",
				"failed: " + module + "fails TestFails/inner\n",
				"1 tests passed, 2 failed, 0 skipped, in 1 packages\n",
			},
			unsaid: []string{"=== RUN", "said by a test that passes"},
		},
		{
			pkg:  "panics",
			said: []string{"panic: no such order", "panics_test.go:7", "failed: " + module + "panics TestPanics\n"},
		},
		{
			pkg: "skips", ok: true,
			said: []string{
				"ok  \t" + module + "skips",
				"skipped: " + module + "skips TestSkips: skips_test.go:7: no server\n",
				"1 tests passed, 0 failed, 1 skipped, in 1 packages\n",
			},
		},
		{pkg: "broken", said: []string{"undefined: undefinedHere", "FAIL\t" + module + "broken [build failed]"}},
		{pkg: "empty", said: []string{"[no test files]", "no test ran\n"}},
	} {
		t.Run(test.pkg, func(t *testing.T) {
			// It exits with status 1 where a test fails; what went wrong otherwise is in its output.
			events, _ := exec.Command("go", "test", "-json", "./testdata/"+test.pkg).Output()
			for _, ci := range []bool{false, true} {
				var out bytes.Buffer
				r := newReport(&out)
				if err := r.read(bytes.NewReader(events)); err != nil {
					t.Fatal(err)
				}
				got, want := r.finish(ci), test.ok
				if ci {
					want = test.okCI
				}
				if got != want {
					t.Errorf("in CI %t: all is well %t, want %t", ci, got, want)
				}
				for _, said := range test.said {
					if !strings.Contains(out.String(), said) {
						t.Errorf("in CI %t: %q is missing in:\n%s", ci, said, out.String())
					}
				}
				for _, unsaid := range test.unsaid {
					if strings.Contains(out.String(), unsaid) {
						t.Errorf("in CI %t: %q is in:\n%s", ci, unsaid, out.String())
					}
				}
			}
		})
	}
}

func TestWhatIsNoEventIsPrinted(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out)
	if err := r.read(strings.NewReader("go: no such module\n{}\n{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"T\"}\nlast")); err != nil {
		t.Fatal(err)
	}
	if want := "go: no such module\n{}\nlast\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	if !r.finish(true) {
		t.Errorf("one test passed, and the report says that something is wrong: %s", out.String())
	}
}
