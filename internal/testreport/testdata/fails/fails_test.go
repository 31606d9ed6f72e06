package fails

import "testing"

func TestPasses(t *testing.T) { t.Log("said by a test that passes") }

func TestFails(t *testing.T) {
	t.Run("inner", func(t *testing.T) { t.Error("two is not three") })
}
