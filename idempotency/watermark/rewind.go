package watermark

import (
	"context"
	"time"
)

// rewindLife is how long a position lives that was set by hand, if no claim gives it another expiry: a day longer than
// the longest retention of a stream, 8,760 hours
// (https://docs.aws.amazon.com/kinesis/latest/APIReference/API_IncreaseStreamRetentionPeriod.html).
const rewindLife = (8760 + 24) * time.Hour

// Rewind sets the position of a consumer in one shard by hand. Records at or before it are skipped, all others run. The
// zero Position forgets what is done. To run the record with sequence number n again, and all behind it, rewind to n-1;
// no record need have that number.
//
// It takes the shard from a batch that is running. That batch's records then fail, and come again.
//
// A watermark decides what is skipped, and not what Lambda delivers: records that Lambda has moved past come again only
// if an event source mapping starts at them.
//
// The names are those of Key. A position that no batch meets afterwards is forgotten after 366 days.
func Rewind(ctx context.Context, store Store, consumer, streamARN, shardID string, to Position) error {
	now := time.Now()
	return store.Rewind(ctx, RewindRequest{
		Key: Key(consumer, streamARN, shardID), Now: now, To: to, Expiry: now.Add(rewindLife),
	})
}
