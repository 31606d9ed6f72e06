package kinesis_test

import (
	"context"
	"encoding/base64"
	"testing"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// errorHook is a hook that keeps the errors of records that are not done and were not skipped.
type errorHook []error

func (f *errorHook) OnRecordFinished(_ context.Context, r *batch.Result) {
	if !r.Outcome.Done() && r.Outcome != batch.Skipped {
		*f = append(*f, r.Err)
	}
}

func (f *errorHook) option(o *kinesis.Options) { o.Hooks = append(o.Hooks, f) }

// only returns the error, of which there must be one.
func (f *errorHook) only(t testing.TB) error {
	t.Helper()
	if len(*f) != 1 {
		t.Fatalf("%d records failed, want 1: %v", len(*f), *f)
	}
	return (*f)[0]
}

func encode(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }
