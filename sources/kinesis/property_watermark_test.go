package kinesis_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency/watermark"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
)

// twoLanes are partition keys whose records are in batches of their own at a parallelization factor of 2.
var twoLanes = [2]string{"a", "b"}

// succeedAt drains a stream of one record of each key, of which the first fails the first time. It returns the records
// that have succeeded, in any order.
func succeedAt(t *testing.T, factor int, protect func(*kinesis.Options)) []string {
	var succeeded []string
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var batches [][]string
		s, err := kinesistest.NewStream("clicks", func(o *kinesistest.Options) {
			o.ParallelizationFactor = factor
			o.Observe = func(d kinesistest.Delivery) {
				mu.Lock()
				defer mu.Unlock()
				var keys []string
				for _, r := range d.Records {
					keys = append(keys, r.Kinesis.PartitionKey)
				}
				batches = append(batches, keys)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, key := range twoLanes {
			if _, _, err := s.Put(kinesistest.Record{PartitionKey: key, Data: []byte(key)}); err != nil {
				t.Fatal(err)
			}
		}
		failed := false
		h := newHandler(t, func(_ context.Context, r *kinesis.Record[string]) error {
			if r.Data == twoLanes[0] && !failed {
				failed = true
				time.Sleep(50 * time.Millisecond) // so that it comes again when the other is through
				return errOnPurpose
			}
			mu.Lock()
			defer mu.Unlock()
			succeeded = append(succeeded, r.Data)
			return nil
		}, protect)
		if err := s.Drain(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if together := slices.ContainsFunc(batches, func(keys []string) bool { return len(keys) == 2 }); together != (factor == 1) {
			t.Fatalf("at factor %d the batches are of the keys %v", factor, batches)
		}
	})
	slices.Sort(succeeded)
	return succeeded
}

// At a parallelization factor of 2 a watermark loses records, and this is how: the batch of the second key moves the
// position past the record of the first, in whatever order the two come. When that one comes again it is taken for done.
// A guard, which remembers records one by one, loses none. At factor 1 a watermark loses none either.
func TestWatermarkLosesRecordsAtFactorTwo(t *testing.T) {
	a, b := twoLanes[0], twoLanes[1]
	watermarked := func(o *kinesis.Options) {
		o.Watermark = kinesis.AssumeParallelizationFactorOne("counter", watermark.NewMemoryStore())
	}
	for _, test := range []struct {
		name      string
		factor    int
		protect   func(*kinesis.Options)
		succeeded []string
	}{
		{"watermark, factor 2", 2, watermarked, []string{b}},
		{"watermark, factor 1", 1, watermarked, []string{a, b}},
		{"guard, factor 2", 2, guarded(t), []string{a, b}},
		{"guard, factor 1", 1, guarded(t), []string{a, b}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.succeeded, succeedAt(t, test.factor, test.protect)); diff != "" {
				t.Errorf("records that have succeeded (-want +got):\n%s", diff)
			}
		})
	}
}
