package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
)

// keeper is a store that keeps results as what remember makes of them.
type keeper struct {
	*idempotency.MemoryStore
	remember func(data []byte) ([]byte, error)
}

func (keeper) KeepsValues() bool { return true }

func (k keeper) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	data, notStored := k.remember(r.Data)
	r.Data = data
	if err := k.MemoryStore.Complete(ctx, r); err != nil {
		return err
	}
	return notStored
}

// remade decodes and encodes data, with numbers as texts or as float64.
func remade(data []byte, useNumber bool) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if useNumber {
		d.UseNumber()
	}
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// TestValueKeeper has a store whose results are other bytes of the same value, and some whose values are others.
func TestValueKeeper(t *testing.T) {
	for _, test := range []struct {
		name     string
		remember func(data []byte) ([]byte, error)
		want     bool // whether the check passes
	}{
		{"the same value", func(data []byte) ([]byte, error) { return remade(data, true) }, true},
		{"a name twice is refused", func(data []byte) ([]byte, error) {
			if string(data) == `{"a":1,"a":2}` {
				return nil, idempotency.ErrResultNotStored
			}
			return remade(data, true)
		}, true},
		{"large numbers are rounded", func(data []byte) ([]byte, error) { return remade(data, false) }, false},
		{"a number becomes a string", func(data []byte) ([]byte, error) {
			if string(data) == "0" {
				data = []byte(`"0"`)
			}
			return data, nil
		}, false},
		{"null for false", func(data []byte) ([]byte, error) {
			return bytes.ReplaceAll(data, []byte("false"), []byte("null")), nil
		}, false},
		{"more than a name twice is refused", func(data []byte) ([]byte, error) {
			return nil, fmt.Errorf("%w: %s", idempotency.ErrResultNotStored, data)
		}, false},
		{"no JSON", func(data []byte) ([]byte, error) { return append(bytes.Clone(data), '}'), nil }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := record(t, func(t testing.TB) { dataDocuments(t, newSuite(t, keeper{idempotency.NewMemoryStore(), test.remember})) })
			if r.Failed() == test.want {
				t.Errorf("the check passes: %t; want %t", !r.Failed(), test.want)
			}
		})
	}
}
