package powertools

import (
	"crypto"
	"crypto/fips140"
	_ "crypto/md5" // the hashes of Options.Hash
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"fmt"
	"slices"
)

// Language is the language of the Powertools whose keys are wanted. Each makes other keys of the same payload.
type Language uint8

const (
	// TypeScript is Powertools for AWS Lambda (TypeScript) 2.
	TypeScript Language = iota + 1
	// Python is Powertools for AWS Lambda (Python) 3.
	Python
	// Java is Powertools for AWS Lambda (Java) 2.
	Java
)

// String returns the language's name.
func (l Language) String() string {
	if !l.valid() {
		return fmt.Sprintf("Language(%d)", uint8(l))
	}
	return dialects[l].name
}

func (l Language) valid() bool { return l >= TypeScript && l <= Java }

// Namespace returns what Powertools puts before the '#' of its keys, which is the namespace of the idempotency.Guard that
// shares them. The function is the Lambda function's name (AWS_LAMBDA_FUNCTION_NAME). The handler is the code's:
//
//   - TypeScript has none in its keys, and the argument is ignored.
//   - Python: the module and qualified name of the decorated function, "app.lambda_handler" or "app.Orders.place".
//   - Java: the name of the annotated method, "handleRequest"; with PowertoolsIdempotency.makeIdempotent the name given
//     to it, or "function". An empty one is left out.
//
// Where a key prefix is configured (keyPrefix in TypeScript, key_prefix in Python), that is the namespace, and this
// function is not needed: TypeScript's without the white space around it. A prefix with a '#' in it cannot be a namespace.
func (l Language) Namespace(function, handler string) string {
	if l == TypeScript || l == Java && handler == "" {
		return function
	}
	return function + "." + handler
}

// Options change how Keys computes. The zero value does what Powertools does by default.
type Options struct {
	// Hash is Powertools' hashFunction, hash_function or withHashFunction: crypto.MD5, SHA1, SHA224, SHA256, SHA384 or
	// SHA512. 0 means crypto.MD5, which is the default of Powertools.
	Hash crypto.Hash

	// HashEmpty makes Key hash some of the values in which Powertools finds no key: 0, "", false, {}, [], and objects and
	// arrays of such values, of null and of nothing else. Powertools for TypeScript runs them under one key each, unless
	// throwOnNoIdempotencyKey is set, so that all payloads that lack a key count as one. It is for TypeScript only.
	HashEmpty bool
}

// hashes are the values of Options.Hash, in the order in which errors name them.
var hashes = []crypto.Hash{crypto.MD5, crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512}

// Keys computes keys and fingerprints as one language's Powertools does. It is safe for concurrent use.
type Keys struct {
	dialect   dialect
	hash      crypto.Hash
	hashEmpty bool
}

// NewKeys returns the Keys of a language's Powertools. The error names the argument or option that is out of its limits.
func NewKeys(l Language, optFns ...func(*Options)) (*Keys, error) {
	var o Options
	for _, f := range optFns {
		if f != nil {
			f(&o)
		}
	}
	if o.Hash == 0 {
		o.Hash = crypto.MD5
	}
	switch {
	case !l.valid():
		return nil, fmt.Errorf("powertools: language is %v, want %v, %v or %v", l, TypeScript, Python, Java)
	case !slices.Contains(hashes, o.Hash):
		return nil, fmt.Errorf("powertools: Options.Hash is %v, want one of %v", o.Hash, hashes)
	case fips140.Enforced() && (o.Hash == crypto.MD5 || o.Hash == crypto.SHA1):
		return nil, fmt.Errorf("powertools: Options.Hash is %v, which GODEBUG=fips140=only forbids; want crypto.SHA256 "+
			"or another of SHA-2, and the same in Powertools", o.Hash)
	case o.HashEmpty && l != TypeScript:
		return nil, fmt.Errorf("powertools: Options.HashEmpty is set, want it unset for %v: its Powertools stores nothing "+
			"under a key that is empty", l)
	}
	return &Keys{dialect: dialects[l], hash: o.Hash, hashEmpty: o.HashEmpty}, nil
}

// Key returns the part of Powertools' key behind the '#', which is the key for a Guard whose namespace is the part before
// it. The value is JSON: what the expression of the key (eventKeyJmesPath, event_key_jmespath, withEventKeyJMESPath)
// selects, or the whole payload where there is none. Nothing at all, such as a json.RawMessage that no member of an object
// has set, is null.
//
// It returns "", which is a missing key to a Guard, for a value in which Powertools finds no key: always for null; see
// Options.HashEmpty for the others of TypeScript. To Python "", {}, [] and an array of nulls are no key, to Java {}, []
// and objects and arrays of nulls. The error says what is wrong with a value that is not JSON in UTF-8.
func (k *Keys) Key(value []byte) (string, error) {
	v, err := parse(value)
	if err != nil {
		return "", err
	}
	if v.kind == null || !k.hashEmpty && k.dialect.missing(v) {
		return "", nil
	}
	return k.digest(v), nil
}

// Fingerprint returns what Powertools stores in the attribute validation. The value is JSON: what the expression of the
// validation (payloadValidationJmesPath and the like) selects, or nothing at all, which is null. The error says what is
// wrong with a value that is not JSON in UTF-8.
func (k *Keys) Fingerprint(value []byte) (string, error) {
	v, err := parse(value)
	if err != nil {
		return "", err
	}
	return k.digest(v), nil
}

func (k *Keys) digest(v value) string {
	hash := k.hash.New()
	_, _ = hash.Write(k.dialect.appendText(nil, v)) // a hash returns no error
	return k.dialect.encode(hash.Sum(nil))
}
