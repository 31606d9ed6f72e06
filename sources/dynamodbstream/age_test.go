package dynamodbstream_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// A batch whose oldest change is older than its key lives is warned about, once in the life of a handler.
func TestAgeWarning(t *testing.T) {
	const warning = "record is older than its idempotency key lives, so a redelivery may run again"
	hour := func(o *idempotency.Options) { o.Expiry = time.Hour }
	for _, test := range []struct {
		name    string
		options func(*idempotency.Options)
		age     time.Duration
		want    int
	}{
		{"as old as a stream lets a change be", func(*idempotency.Options) {}, 24 * time.Hour, 0},
		{"older", func(*idempotency.Options) {}, 25*time.Hour + time.Second, 1},
		{"young by option", hour, time.Hour, 0},
		{"older by option", hour, time.Hour + time.Second, 1},
		{"young by a longer option", func(o *idempotency.Options) { o.Expiry = 60 * 24 * time.Hour }, 30 * 24 * time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged logs
				h := newHandler(t, (&worker{}).handle, guarded(t, test.options), logged.option)
				changes := numbered(5)
				for i := range changes {
					changes[i].At = time.Now()
				}
				changes[0].At = time.Now().Add(-test.age)
				wantCheckpoint(t, t.Context(), h, event(changes...), "")
				wantCheckpoint(t, t.Context(), h, event(changes...), "")
				var want []string
				if test.want > 0 {
					want = []string{eventID(0)}
				}
				var got []string
				for _, line := range logged.About(t, warning) {
					got = append(got, line.Record)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("warned about (-want +got):\n%s", diff)
				}
			})
		})
	}
	// A change that does not say when it was made is not old, and without a guard age does not matter.
	var logged logs
	old := record{ID: "a", Note: "a", At: time.Unix(1480642020, 0)}
	h := newHandler(t, (&worker{}).handle, guarded(t), logged.option)
	wantCheckpoint(t, t.Context(), h, rawEvent(old.change(`"ApproximateCreationDateTime":1480642020,`, "")), "")
	wantCheckpoint(t, t.Context(), newHandler(t, (&worker{}).handle, logged.option, func(*dynamodbstream.Options) {}), event(old), "")
	if lines := logged.About(t, warning); len(lines) != 0 {
		t.Errorf("lines are %+v, want none", lines)
	}
}
