package payload

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeyOptions(t *testing.T) {
	none := KeyOptions{}
	if names, errs := none.Names(), none.Validate("x"); names != nil || errs != nil {
		t.Errorf("names are %q, errors are %v, want none", names, errs)
	}
	fine := KeyOptions{PayloadKey: true, Fingerprint: true}
	if diff := cmp.Diff([]string{"Options.PayloadKey", "Options.Fingerprint"}, fine.Names()); diff != "" || fine.Validate("x") != nil {
		t.Errorf("errors are %v, names (-want +got):\n%s", fine.Validate("x"), diff)
	}
	all := KeyOptions{true, true, true, true, true}
	const want = `x: both KeyOf and Options.Key are set, want one
x: both KeyOf and Options.PayloadKey are set, want one
x: both Options.Key and Options.PayloadKey are set, want one
x: both Options.Fingerprint and Options.PayloadFingerprint are set, want one`
	if diff := cmp.Diff(want, errors.Join(all.Validate("x")...).Error()); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"KeyOf", "Options.Key", "Options.PayloadKey", "Options.Fingerprint", "Options.PayloadFingerprint"},
		all.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
