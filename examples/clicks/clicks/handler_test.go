package clicks_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/examples/clicks/clicks"
	"github.com/oncekit/oncekit/examples/clicks/site"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
)

// diary takes down the clicks that it appends.
type diary []string

func (d *diary) Append(ctx context.Context, c site.Click) error {
	if err := (site.FakeJourneys{Logger: slog.New(slog.DiscardHandler)}).Append(ctx, c); err != nil {
		return err
	}
	*d = append(*d, c.ID)
	return nil
}

// TestHandler puts an aggregate of all that can become of a click, and delivers it until nothing is left.
func TestHandler(t *testing.T) {
	stream, err := kinesistest.NewStream("clicks")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var records []kinesistest.Record
	for _, data := range []string{
		`{"id":"1","visitor":"ada","page":"/"}`,
		`{"id":"2","visitor":"ada",`,
		`{"visitor":"ada","page":"/nowhere"}`,
		`{"id":"4","visitor":"ada","page":"/broken"}`,
		`{"id":"5","visitor":"ada","page":"/cart"}`,
	} {
		records = append(records, kinesistest.Record{PartitionKey: "ada", Data: []byte(data)})
	}
	if _, _, err := stream.PutAggregated(records...); err != nil {
		t.Fatal(err)
	}
	guard, err := idempotency.New("clicks", stream.Store(idempotency.NewMemoryStore()),
		func(o *idempotency.Options) { o.CountAttempts = true })
	if err != nil {
		t.Fatal(err)
	}
	var appended diary
	var given []string
	handler, err := clicks.NewHandler(&appended, guard, func(o *kinesis.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.MaxAttempts = 2
		o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error {
			given = append(given, r.ID[strings.LastIndexByte(r.ID, '#'):])
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Drain(t.Context(), handler); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(diary{"1", "5"}, appended); diff != "" {
		t.Errorf("appended (-want +got):\n%s", diff)
	}
	// The two that are no clicks are given up at once, the other one when it has failed twice.
	if diff := cmp.Diff([]string{"#1", "#2", "#3"}, given); diff != "" {
		t.Errorf("dead-lettered, by their place in the aggregate (-want +got):\n%s", diff)
	}
}
