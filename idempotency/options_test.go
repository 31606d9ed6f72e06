package idempotency_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

func TestOptionsLimits(t *testing.T) {
	type options = idempotency.Options
	for _, test := range []struct {
		name    string
		options options
		want    []string // the lines of the error
	}{
		{"zero", options{}, nil},
		{"shortest expiry", options{Expiry: time.Second}, nil},
		{"longest expiry", options{Expiry: math.MaxInt64}, nil},
		{"expiry just too short", options{Expiry: time.Second - 1},
			[]string{"Options.Expiry is 999.999999ms, want 0 (for the default) or at least 1s"}},
		{"negative expiry", options{Expiry: -time.Hour},
			[]string{"Options.Expiry is -1h0m0s, want 0 (for the default) or at least 1s"}},
		{"shortest lease", options{Lease: 10 * time.Millisecond}, nil},
		{"lease just too short", options{Lease: 10*time.Millisecond - 1},
			[]string{"Options.Lease is 9.999999ms, want 0 (for the default) or at least 10ms"}},
		{"negative lease", options{Lease: -time.Minute},
			[]string{"Options.Lease is -1m0s, want 0 (for the default) or at least 10ms"}},
		{"expiry as long as the lease", options{Expiry: time.Minute, Lease: time.Minute}, nil},
		{"expiry shorter than the lease", options{Expiry: time.Minute - 1, Lease: time.Minute},
			[]string{"Options.Expiry is 59.999999999s, want no less than Options.Lease, which is 1m0s"}},
		{"lease longer than the default expiry", options{Lease: 2 * time.Hour}, nil},
		{"no skew, no wait", options{Skew: -1, Wait: -1}, nil},
		{"runs unprotected", options{MissingKey: idempotency.MissingKeyRunsUnprotected}, nil},
		{"unknown choice", options{MissingKey: 2}, []string{"Options.MissingKey is 2, want one of the MissingKey constants"}},
		{"unknown policy", options{HeldElsewhere: 2}, []string{"Options.HeldElsewhere is 2, want one of the HeldElsewhere constants"}},
		{"drops", options{HeldElsewhere: idempotency.HeldElsewhereDrops}, nil},
		{"negative cache", options{LocalCache: -1}, []string{"Options.LocalCache is -1, want 0 (for none) or more"}},
		{"everything", options{Expiry: -1, Lease: 1, MissingKey: 255}, []string{
			"Options.Expiry is -1ns, want 0 (for the default) or at least 1s",
			"Options.Lease is 1ns, want 0 (for the default) or at least 10ms",
			"Options.MissingKey is 255, want one of the MissingKey constants"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := idempotency.New("orders", idempotency.NewMemoryStore(), func(o *options) { *o = test.options })
			var want []string
			for _, line := range test.want {
				want = append(want, "idempotency: "+line)
			}
			if diff := cmp.Diff(strings.Join(want, "\n"), errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if err == nil && g.Options().Lease != test.options.Lease {
				t.Errorf("Options returns %+v, want %+v", g.Options(), test.options)
			}
		})
	}
}

// Later functions see, and can change, what earlier ones did.
func TestOptionsInOrder(t *testing.T) {
	g := newGuard(t, idempotency.NewMemoryStore(),
		func(o *idempotency.Options) { o.Lease, o.Wait = time.Second, time.Second },
		func(o *idempotency.Options) { o.Lease *= 2 })
	if o := g.Options(); o.Lease != 2*time.Second || o.Wait != time.Second {
		t.Errorf("Lease is %v, Wait is %v, want 2s and 1s", o.Lease, o.Wait)
	}
}

// Rule 12, case 15: a missing key is an error for each call, and asks the store for nothing.
func TestMissingKeyFails(t *testing.T) {
	store := &faultStore{}
	g := newGuard(t, store)
	for range 2 {
		_, err := idempotency.Do(t.Context(), g, "", forbidden[int](t))
		wantErr(t, err, idempotency.ErrKeyMissing)
	}
	if len(store.calls) > 0 {
		t.Errorf("store calls are %q, want none", store.calls)
	}
}

// Rule 12, case 15: by choice each call runs, never one shared key for the keyless. A function inside guarded work that
// itself runs unprotected is told so, and not of the claim around it.
func TestMissingKeyRunsUnprotected(t *testing.T) {
	store := &faultStore{}
	unprotect := func(o *idempotency.Options) { o.MissingKey = idempotency.MissingKeyRunsUnprotected }
	g := newGuard(t, store, unprotect)
	runs := 0
	unprotected := func(ctx context.Context) (int, error) {
		if info, ok := idempotency.FromContext(ctx); ok {
			t.Errorf("FromContext is %+v, want none", info)
		}
		runs++
		return runs, nil
	}
	for i := range 2 {
		got, err := idempotency.Do(t.Context(), g, "", unprotected)
		want := idempotency.Result[int]{Value: i + 1}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("call %d: error is %v; result (-want +got):\n%s", i, err, diff)
		}
	}
	_, err := idempotency.Do(t.Context(), g, "", returns(0, errThrottled))
	wantErr(t, err, errThrottled)
	if len(store.calls) > 0 {
		t.Errorf("store calls are %q, want none", store.calls)
	}
	var log bytes.Buffer
	logged := newGuard(t, store, logTo(&log), unprotect)
	_, err = idempotency.Do(t.Context(), logged, "", returns(math.NaN(), nil)) // there is nothing to store it for
	if wantErr(t, err); log.Len() > 0 {
		t.Errorf("log is %q, want nothing", log.String())
	}
	_, err = idempotency.Do(t.Context(), g, "k", func(ctx context.Context) (int, error) {
		got, err := idempotency.Do(ctx, g, "", unprotected)
		return got.Value, err
	})
	wantErr(t, err)
}

// Option functions that are nil, as where an option depends on a condition, are skipped.
func TestNilOptionFunctions(t *testing.T) {
	store := idempotency.NewMemoryStore(nil, func(o *idempotency.MemoryOptions) { o.MaxEntries = 1 }, nil)
	g, err := idempotency.New("orders", store, nil, func(o *idempotency.Options) { o.Lease = time.Second }, nil)
	wantErr(t, err)
	_, err = idempotency.Do(t.Context(), g, "k", returns(1, nil), nil, func(o *idempotency.CallOptions) { o.Fingerprint = "f" }, nil)
	wantErr(t, err)
	entry, _ := store.Get("orders#k")
	if entry.Fingerprint != "f" || g.Options().Lease != time.Second {
		t.Errorf("fingerprint is %q, lease %v, want those of the other functions", entry.Fingerprint, g.Options().Lease)
	}
	_, err = idempotency.Do(t.Context(), g, "other", forbidden[int](t))
	wantErr(t, err, idempotency.ErrStoreFull)
}

// Work that is no function is an error, and no claim.
func TestNilFunction(t *testing.T) {
	store := &faultStore{}
	_, err := idempotency.Do[int](t.Context(), newGuard(t, store), "k", nil)
	if diff := cmp.Diff("idempotency: function is nil, want one that does the work", errorText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if len(store.calls) > 0 {
		t.Errorf("store calls are %q, want none", store.calls)
	}
}
