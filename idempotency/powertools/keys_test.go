package powertools_test

import (
	"crypto"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency/powertools"
)

// testLines returns the lines of a file in testdata, as testdata/README.md describes them.
func testLines(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func newKeys(t testing.TB, l powertools.Language, optFns ...func(*powertools.Options)) *powertools.Keys {
	t.Helper()
	keys, err := powertools.NewKeys(l, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// hashWith sets Options.Hash.
func hashWith(h crypto.Hash) func(*powertools.Options) {
	return func(o *powertools.Options) { o.Hash = h }
}

func hashEmpty(o *powertools.Options) { o.HashEmpty = true }

func TestVectors(t *testing.T) {
	values := testLines(t, "values.txt")
	for l, file := range map[powertools.Language]string{
		powertools.TypeScript: "typescript.txt", powertools.Python: "python.txt", powertools.Java: "java.txt",
	} {
		keys := newKeys(t, l)
		want := testLines(t, file)
		if len(want) != len(values) {
			t.Fatalf("%s has %d lines, values.txt %d", file, len(want), len(values))
		}
		for i, value := range values {
			got, err := keys.Fingerprint([]byte(value))
			if err != nil {
				t.Errorf("%v: fingerprint of %s: %v", l, value, err)
			}
			if got != want[i] {
				t.Errorf("%v: line %d: fingerprint of %s is %s, want %s", l, i+1, value, got, want[i])
			}
			if key, err := keys.Key([]byte(value)); err != nil || key != "" && key != got {
				t.Errorf("%v: line %d: key of %s is %q, %v; want %q or none", l, i+1, value, key, err, got)
			}
		}
	}
}

// What Powertools' own tests expect: generateHash... in BasePersistenceStoreTest of Powertools for Java.
func TestVectorsOfPowertoolsForJava(t *testing.T) {
	for _, test := range []struct {
		value, want string
		hash        crypto.Hash
	}{
		{`"Lambda rocks"`, "70c24d88041893f7fbab4105b76fd9e1", crypto.MD5},
		{`{"id":42,"name":"Product","price":12.0}`, "e71c41727848ed68050d82740894c29b", crypto.MD5},
		{`256.42`, "bb84c94278119c8838649706df4db42b", crypto.MD5},
		{`"Lambda rocks"`, "e6139efa88ef3337e901e826e6f327337f414860fb499d9f26eefcff21d719af", crypto.SHA256},
	} {
		got, err := newKeys(t, powertools.Java, hashWith(test.hash)).Key([]byte(test.value))
		if err != nil || got != test.want {
			t.Errorf("key of %s is %s, %v; want %s", test.value, got, err, test.want)
		}
	}
}

func TestHashes(t *testing.T) {
	const text = `"a"` // which TypeScript and Python hash as it is: sha1sum and the like tell what to expect
	for _, test := range []struct {
		language powertools.Language
		hash     crypto.Hash
		value    string
		want     string
	}{
		{powertools.TypeScript, crypto.SHA1, text, "ezzmi2wvfWfa5CEO64O+afl44qg="},
		{powertools.TypeScript, crypto.SHA256, text, "rI2DQruyNi0T8KVZo2IbtAcBE2iJUWS2KKVPf8M/xDw="},
		{powertools.Python, crypto.SHA224, text, "8870cf95aa509cebbc4ec497d9882b0d09c65aeeb89e7ad70b016256"},
		{powertools.Python, crypto.SHA384, text,
			"72b89b4e8d63f854f451c642c04ba7e040449bfe948fc0b5d9f9c1a81ac63935b6f4ade6aef8e1540b240bd31b90d681"},
		{powertools.Python, crypto.SHA512, text, "72dd48c5f3cef36c66f5633955719b5cdb5f679539ec39b08790978c3b935fb3" +
			"a143e23fe58c8fea2c62346a65990cab78593b4a53b0d16da23d3263bf8e6f41"},
		// Java's hash is a number: it has no zeros before it, but those that make it 32 digits.
		{powertools.Java, crypto.MD5, `168`, "006f52e9102a8d3be2fe5614f42ba989"},
		{powertools.Java, crypto.SHA1, `127`, "8451a05e1e7aa32c75119df950d405265e0904"},
	} {
		got, err := newKeys(t, test.language, hashWith(test.hash)).Key([]byte(test.value))
		if err != nil || got != test.want {
			t.Errorf("%v, %v: key of %s is %s, %v; want %s", test.language, test.hash, test.value, got, err, test.want)
		}
	}
}

// Doubles that Double.toString writes otherwise since Java 19: md5sum of what its documentation says.
func TestDoublesOfJava19(t *testing.T) {
	keys := newKeys(t, powertools.Java)
	for value, want := range map[string]string{
		"2e23":   "def49f5741ea575849eca5c9c5ead517", // 2.0E23
		"1e-323": "e5b5efde8b3a997d6ad5f87a40c5c054", // 9.9E-324
	} {
		if got, err := keys.Key([]byte(value)); err != nil || got != want {
			t.Errorf("key of %s is %s, %v; want %s", value, got, err, want)
		}
	}
}

func TestMissing(t *testing.T) {
	values := []string{
		`null`, `""`, `0`, `-0.0`, `1e-400`, `false`, `[]`, `{}`, `[null]`, `{"a":null}`, `[0,"",false,null]`, `{"a":0,"b":""}`,
		`[[]]`, `{"a":{}}`, `"0"`, `1e400`, `true`, `[null,1]`,
	}
	got := make(map[string]string)
	for _, value := range values {
		for _, tool := range []struct {
			letter string
			keys   *powertools.Keys
		}{
			{"T", newKeys(t, powertools.TypeScript)},
			{"t", newKeys(t, powertools.TypeScript, hashEmpty)},
			{"P", newKeys(t, powertools.Python)},
			{"J", newKeys(t, powertools.Java)},
		} {
			key, err := tool.keys.Key([]byte(value))
			if err != nil {
				t.Fatal(err)
			}
			if key == "" {
				got[value] += tool.letter
			}
		}
	}
	want := map[string]string{
		`null`: "TtPJ", `""`: "TP", `0`: "T", `-0.0`: "T", `1e-400`: "T", `false`: "T", `[]`: "TPJ", `{}`: "TPJ",
		`[null]`: "TPJ", `{"a":null}`: "TJ", `[0,"",false,null]`: "T", `{"a":0,"b":""}`: "T",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values without a key, by tool (-want +got):\n%s", diff)
	}
}

func TestInvalidValues(t *testing.T) {
	for value, want := range map[string]string{
		` `:                    "powertools: value is no JSON: unexpected end of JSON input",
		`{`:                    "powertools: value is no JSON: unexpected end of JSON input",
		`1 2`:                  "powertools: value is no JSON: invalid character '2' after top-level value",
		`order-1`:              "powertools: value is no JSON: invalid character 'o' looking for beginning of value",
		"\"\xff\"":             "powertools: value has bytes that are not UTF-8, want JSON in UTF-8",
		"\"\xed\xa0\x80\"":     "powertools: value has bytes that are not UTF-8, want JSON in UTF-8",
		"{\"\xff\":1,\"a\":2}": "powertools: value has bytes that are not UTF-8, want JSON in UTF-8",
	} {
		keys := newKeys(t, powertools.Python)
		for name, f := range map[string]func([]byte) (string, error){"Key": keys.Key, "Fingerprint": keys.Fingerprint} {
			got, err := f([]byte(value))
			if got != "" || err == nil || err.Error() != want {
				t.Errorf("%s of %q is %q, %v; want the error %q", name, value, got, err, want)
			}
		}
	}
}

// Nothing is null, to which Powertools makes what it selects nothing from.
func TestNothing(t *testing.T) {
	for l := powertools.TypeScript; l <= powertools.Java; l++ {
		keys := newKeys(t, l)
		want, _ := keys.Fingerprint([]byte("null"))
		if got, err := keys.Fingerprint(nil); err != nil || got != want || want == "" {
			t.Errorf("%v: fingerprint of nothing is %q, %v; want %q", l, got, err, want)
		}
		if key, err := keys.Key(nil); err != nil || key != "" {
			t.Errorf("%v: key of nothing is %q, %v; want none", l, key, err)
		}
	}
}

func TestNewKeysInvalid(t *testing.T) {
	for _, test := range []struct {
		language powertools.Language
		options  func(*powertools.Options)
		want     string
	}{
		{0, nil, "powertools: language is Language(0), want TypeScript, Python or Java"},
		{4, nil, "powertools: language is Language(4), want TypeScript, Python or Java"},
		{powertools.Java, hashWith(crypto.BLAKE2b_256), "powertools: Options.Hash is BLAKE2b-256, " +
			"want one of [MD5 SHA-1 SHA-224 SHA-256 SHA-384 SHA-512]"},
		{powertools.Java, hashEmpty, "powertools: Options.HashEmpty is set, want it unset for Java: its Powertools stores " +
			"nothing under a key that is empty"},
	} {
		keys, err := powertools.NewKeys(test.language, test.options)
		if keys != nil || err == nil || err.Error() != test.want {
			t.Errorf("NewKeys(%v) is %v, %v; want the error %q", test.language, keys, err, test.want)
		}
	}
}

// TestFIPS runs itself in a process in which MD5 is forbidden, and would panic.
func TestFIPS(t *testing.T) {
	if os.Getenv("GODEBUG") == "fips140=only" {
		if _, err := newKeys(t, powertools.Java, hashWith(crypto.SHA256)).Key([]byte(`1`)); err != nil {
			t.Error(err)
		}
		_, err := powertools.NewKeys(powertools.Java)
		if err == nil || !strings.Contains(err.Error(), "fips140=only forbids") {
			t.Errorf("NewKeys is %v, want an error that says what forbids MD5", err)
		}
		return
	}
	self := exec.Command(os.Args[0], "-test.run=^TestFIPS$")
	self.Env = append(os.Environ(), "GODEBUG=fips140=only")
	out, err := self.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("with GODEBUG=fips140=only: %v\n%s", err, out)
	} else if err != nil {
		t.Fatal(err)
	}
}

func TestNamespace(t *testing.T) {
	var got []string
	for l := powertools.TypeScript; l <= powertools.Java; l++ {
		got = append(got, l.Namespace("orders", "place"), l.Namespace("orders", ""))
	}
	want := []string{"orders", "orders", "orders.place", "orders.", "orders.place", "orders"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

// White space is nowhere in a key, nor is the order of an object's members in TypeScript's and Python's, if no two names
// differ only in case.
func TestSameValueSameKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9]{1,3}`), 2, 8, rapid.ID).Draw(t, "names")
		shuffled := rapid.Permutation(names).Draw(t, "shuffled")
		space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
		write := func(names []string, space string) []byte {
			var members []string
			for _, name := range names {
				members = append(members, space+`"`+name+`"`+space+`:`+space+`["`+name+`"]`)
			}
			return []byte("{" + strings.Join(members, space+",") + space + "}")
		}
		for l := powertools.TypeScript; l <= powertools.Java; l++ {
			keys, err := powertools.NewKeys(l)
			if err != nil {
				t.Fatal(err)
			}
			plain, _ := keys.Key(write(names, ""))
			spaced, _ := keys.Key(write(names, space))
			other, _ := keys.Key(write(shuffled, ""))
			if plain == "" || spaced != plain || l != powertools.Java && other != plain {
				t.Fatalf("%v: keys of %q are %q, %q with space, %q as %q", l, names, plain, spaced, other, shuffled)
			}
		}
	})
}

func FuzzKeys(f *testing.F) {
	for _, value := range testLines(f, "values.txt") {
		f.Add([]byte(value))
	}
	var all []*powertools.Keys
	for l := powertools.TypeScript; l <= powertools.Java; l++ {
		all = append(all, newKeys(f, l))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, keys := range all {
			fingerprint, err := keys.Fingerprint(value)
			if (fingerprint == "") != (err != nil) {
				t.Errorf("fingerprint of %q is %q, %v", value, fingerprint, err)
			}
			spaced, spacedErr := keys.Fingerprint([]byte("\t" + string(value) + "\n"))
			if len(value) > 0 && (spaced != fingerprint || (err == nil) != (spacedErr == nil)) {
				t.Errorf("fingerprint of %q is %q, and with space around it %q, %v", value, fingerprint, spaced, spacedErr)
			}
		}
	})
}
