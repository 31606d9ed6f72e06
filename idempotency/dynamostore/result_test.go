package dynamostore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// bucket is a ResultStore in memory.
type bucket struct{ objects sync.Map }

func (b *bucket) Put(_ context.Context, r idempotency.PutRequest) (string, error) {
	reference := r.Key + "/" + r.Owner
	b.objects.Store(reference, r.Data)
	return reference, nil
}

func (b *bucket) Get(_ context.Context, reference string) ([]byte, error) {
	data, ok := b.objects.Load(reference)
	if !ok {
		return nil, fmt.Errorf("no object %q: %w", reference, idempotency.ErrResultNotStored)
	}
	return data.([]byte), nil
}

// TestResultsInOtherForms replays results that are compressed, kept elsewhere, or look as if they were, from both forms of
// data, and read by guards that store in the other.
func TestResultsInOtherForms(t *testing.T) {
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client)
	results := &bucket{}
	large := `{"lines":["` + strings.Repeat("paid ", 200_000) + `"]}` // 1 MB
	guards := map[string]*idempotency.Guard{}
	for form, native := range map[string]bool{"text": false, "native": true} {
		for name, options := range map[string]idempotency.ResultOptions{
			"as it is":   {Store: results, StoreOver: 1 << 30},
			"compressed": {Store: results, StoreOver: 1 << 30, Compress: true},
			"elsewhere":  {Store: results, StoreOver: -1},
		} {
			g, err := idempotency.New("results", dynamostore.New(client, table, func(o *dynamostore.Options) { o.NativeData = native }),
				func(o *idempotency.Options) { o.Results = options })
			if err != nil {
				t.Fatal(err)
			}
			guards[form+", "+name] = g
		}
	}
	for i, want := range []string{
		large,
		`{"@oncekit":"gzip","data":"H4sI"}`,
		`{"@oncekit":"reference","data":"a"}`,
		`{"data":1,"\u0040oncekit":"json"}`,
		`"{\"@oncekit\":\"reference\",\"data\":\"a\"}"`,
	} {
		for writer, g := range guards {
			key := fmt.Sprint(writer, i)
			_, err := idempotency.Do(t.Context(), g, key, func(context.Context) (json.RawMessage, error) { return json.RawMessage(want), nil })
			if err != nil {
				t.Errorf("%s: %v", writer, err)
			}
			for reader, g := range guards {
				got, err := idempotency.Do(t.Context(), g, key, func(context.Context) (json.RawMessage, error) {
					return nil, errors.New("the work was done again")
				})
				if want == large && strings.HasSuffix(writer, "as it is") {
					if !errors.Is(err, idempotency.ErrResultNotStored) {
						t.Errorf("%s to %s: error is %v, want ErrResultNotStored", writer, reader, err)
					}
					continue
				}
				if diff := cmp.Diff(parsed(want), parsed(string(got.Value))); diff != "" || err != nil {
					t.Errorf("%s to %s: error is %v, value (-want +got):\n%.500s", writer, reader, err, diff)
				}
			}
		}
	}
}

func parsed(text string) (v any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err.Error()
	}
	return v
}
