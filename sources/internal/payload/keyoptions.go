package payload

import "fmt"

// KeyOptions are the options of a source about keys and fingerprints, by whether they are set.
type KeyOptions struct{ Key, KeyOf, PayloadKey, Fingerprint, PayloadFingerprint bool }

// keyOption is the name of an option, whether it is set, and what it is for: of two for the same only one may be set.
type keyOption struct {
	name, purpose string
	set           bool
}

func (k KeyOptions) options() []keyOption {
	const key, fingerprint = "key", "fingerprint"
	return []keyOption{
		{"KeyOf", key, k.KeyOf}, {"Options.Key", key, k.Key}, {"Options.PayloadKey", key, k.PayloadKey},
		{"Options.Fingerprint", fingerprint, k.Fingerprint}, {"Options.PayloadFingerprint", fingerprint, k.PayloadFingerprint},
	}
}

// Names returns the names of those that are set.
func (k KeyOptions) Names() []string {
	var names []string
	for _, option := range k.options() {
		if option.set {
			names = append(names, option.name)
		}
	}
	return names
}

// Validate returns an error for each two that exclude each other, which says so for the source, the package's name.
func (k KeyOptions) Validate(source string) []error {
	var errs []error
	options := k.options()
	for i, one := range options {
		for _, other := range options[i+1:] {
			if one.set && other.set && one.purpose == other.purpose {
				errs = append(errs, fmt.Errorf("%s: both %s and %s are set, want one", source, one.name, other.name))
			}
		}
	}
	return errs
}
