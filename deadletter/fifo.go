package deadletter

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/oncekit/oncekit/batch"
)

// isFIFO reports whether the queue with this URL is a FIFO queue: their names end in .fifo, and no other's do
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html).
func isFIFO(queueURL string) bool { return strings.HasSuffix(queueURL, ".fifo") }

// groupID returns the MessageGroupId of a record's letter. The letters of one lane are in order, as the records are. A
// record without a lane is in nobody's way.
func groupID(r *batch.Record) string {
	switch {
	case r.Lane != "":
		return digest("lane", r.Source, r.Lane)
	case r.ID != "":
		return digest("record", r.Source, r.ID)
	}
	return rand.Text()
}

// deduplicationID returns the MessageDeduplicationId of a record's letter: the same for every delivery of the record, and
// for no other. A record without an identity might be any, so its letter is never taken for another.
func deduplicationID(r *batch.Record) string {
	if r.ID == "" {
		return rand.Text()
	}
	return digest(r.Source, r.ID, r.Key)
}

// digest makes a name of up to 128 legal characters from the parts. Each is written with its length before it, so that no
// two lists of parts make one name.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hex.EncodeToString(h.Sum(nil))
}
