package watermark

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/oncekit/oncekit/idempotency"
)

// keyPrefix begins every key. A guard's key begins with its namespace, which is not empty and has no '#', so that no key
// of a guard begins with '#': watermarks and claims can share a table.
const keyPrefix = "#watermark#"

// Key returns the key under which a Store keeps the position of one consumer in one shard of a stream. The consumer's
// name is the user's; two consumers of one stream need names of their own. Other parts never make the same key. Of a
// consumer's ARN, which is what the records of enhanced fan-out have, the stream's is taken.
//
// The key is "#watermark#" and the parts joined by idempotency.JoinKey. It is "#watermark#sha256:<hex>", the hash of the
// same, where that would be longer than idempotency.MaxKeyLength or is no UTF-8. It is "", which every Store refuses, if
// a part is empty.
func Key(consumer, streamARN, shardID string) string {
	// A stream's name has no slash, https://docs.aws.amazon.com/kinesis/latest/APIReference/API_CreateStream.html.
	stream, _, _ := strings.Cut(streamARN, "/consumer/")
	key := idempotency.JoinKey(consumer, stream, shardID)
	if key == "" {
		return ""
	}
	if len(keyPrefix)+len(key) > idempotency.MaxKeyLength || !utf8.ValidString(key) {
		// No joined key looks like this one: that has two more '#'.
		sum := sha256.Sum256([]byte(key))
		key = "sha256:" + hex.EncodeToString(sum[:])
	}
	return keyPrefix + key
}
