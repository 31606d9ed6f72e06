package lifetime

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLive(t *testing.T) {
	failed := errors.New("failed")
	for _, test := range []struct {
		name string
		f    func(testing.TB) error
		is   error
		says string
	}{
		{"nothing", func(testing.TB) error { return nil }, nil, ""},
		{"error", func(testing.TB) error { return failed }, failed, "failed"},
		{"fatal error", func(t testing.TB) error { t.Fatal(failed); return nil }, failed, "failed"},
		{"fatal text", func(t testing.TB) error { t.Fatal("a", 1); return nil }, nil, "a1"},
		{"fatal format", func(t testing.TB) error { t.Fatalf("%d: %v", 1, failed); return nil }, nil, "1: failed"},
		{"skip", func(t testing.TB) error { t.Skip(os.ErrNotExist); return nil }, os.ErrNotExist, "file does not exist"},
		{"errors", func(t testing.TB) error { t.Errorf("%d", 1); t.Errorf("%d", 2); return failed }, failed, "failed\n1\n2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var order []int
			err := Live(func(t testing.TB) error {
				t.Helper()
				t.Cleanup(func() { order = append(order, 1) })
				t.Cleanup(func() { order = append(order, 2) })
				return test.f(t)
			})
			said := ""
			if err != nil {
				said = err.Error()
			}
			if said != test.says || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error is %v; want %q", err, test.says)
			}
			if diff := cmp.Diff([]int{2, 1}, order); diff != "" {
				t.Errorf("cleanups (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherPanicsGoOn(t *testing.T) {
	cleaned := false
	defer func() {
		if r := recover(); r != "other" || !cleaned {
			t.Errorf("recovered %v, cleaned: %t; want the panic, and a cleanup before it", r, cleaned)
		}
	}()
	_ = Live(func(t testing.TB) error {
		t.Cleanup(func() { cleaned = true })
		panic("other")
	})
}

// What was started last ends first, and nothing is left.
func TestEnd(t *testing.T) {
	var order []string
	var folder string
	err := Live(func(t testing.TB) error {
		t.Helper()
		folder = t.TempDir()
		t.Cleanup(func() { order = append(order, "first") })
		t.Cleanup(func() { order = append(order, "second") })
		return nil
	})
	if err != nil || !slices.Equal(order, []string{"second", "first"}) {
		t.Errorf("error %v, cleanups ran in the order %v, want the last one first", err, order)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there (%v)", err)
	}
}
