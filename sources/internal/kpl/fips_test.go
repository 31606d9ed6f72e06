package kpl_test

import (
	"crypto/md5"
	"os"
	"os/exec"
	"testing"

	"github.com/oncekit/oncekit/sources/internal/kpl"
)

// TestStrictFIPS runs the package in a process that forbids MD5, as crypto/md5 sees it.
func TestStrictFIPS(t *testing.T) {
	const inside = "KPL_TEST_STRICT_FIPS"
	if os.Getenv(inside) == "" {
		test := exec.Command(os.Args[0], "-test.run=^TestStrictFIPS$", "-test.v")
		test.Env = append(os.Environ(), inside+"=1", "GODEBUG=fips140=only")
		if out, err := test.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if !panics(func() { md5.Sum(nil) }) {
		t.Error("crypto/md5 does not panic, so that there is nothing to see here")
	}
	if !kpl.IsAggregate(kpl.Append(nil, []kpl.UserRecord{{PartitionKey: "a"}})) {
		t.Error("what Append returned is no aggregate")
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}
