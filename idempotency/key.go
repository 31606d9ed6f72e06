package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// MaxKeyLength is the longest stored key, namespace included, in bytes. A longer one is stored as a hash of the key.
// It is half of what a DynamoDB partition key may be
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html).
const MaxKeyLength = 1024

const hashPrefix = "sha256:"

// JoinKey makes one key of several parts, such that different parts never make the same key: JoinKey("a", "b") is
// "a#b", and a '#' or '%' inside a part is escaped. It returns "", which is a missing key, if there is no part or one
// of them is empty.
func JoinKey(parts ...string) string {
	escape := false
	for _, part := range parts {
		if part == "" {
			return ""
		}
		escape = escape || strings.ContainsAny(part, "#%")
	}
	if escape {
		escaped := make([]string, len(parts))
		for i, part := range parts {
			escaped[i] = partEscaper.Replace(part)
		}
		parts = escaped
	}
	return strings.Join(parts, "#")
}

var partEscaper = strings.NewReplacer("%", "%25", "#", "%23")

// storedKey returns the key as it stands in the store: namespace#key, or namespace#sha256:<hex> if that would be too
// long, if hash asks for it, or if the key is no text that every store keeps as it is. A key that looks like a hash is
// hashed too, so that nobody can name another key's hash.
func storedKey(namespace, key string, hash bool) string {
	if hash || len(namespace)+1+len(key) > MaxKeyLength || strings.HasPrefix(key, hashPrefix) || !utf8.ValidString(key) {
		sum := sha256.Sum256([]byte(key))
		key = hashPrefix + hex.EncodeToString(sum[:])
	}
	return namespace + "#" + key
}

// storedFingerprint returns the fingerprint as it stands in the store: as it is, or its hash if it is long or no text,
// which not every store would give back as it was.
func storedFingerprint(fingerprint string) string {
	if len(fingerprint) > MaxKeyLength || !utf8.ValidString(fingerprint) {
		sum := sha256.Sum256([]byte(fingerprint))
		return hashPrefix + hex.EncodeToString(sum[:])
	}
	return fingerprint
}
