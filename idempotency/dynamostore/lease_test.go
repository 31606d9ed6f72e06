package dynamostore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

func mayfly() layout {
	for _, l := range layouts() {
		if l.name == "mayfly" {
			return l
		}
	}
	panic("no such layout")
}

// TestMayfly compares the preset with the layout that the tests write out.
func TestMayfly(t *testing.T) {
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, dynamostore.Mayfly)
	store := dynamostore.New(client, table, dynamostore.Mayfly)
	at := time.Date(2026, 3, 14, 13, 45, 7, 0, time.UTC)
	mustClaim(t, store, idempotency.ClaimRequest{
		Key: "orders#4711", Owner: "mine", Now: at, Lease: at.Add(time.Minute), Expiry: at.Add(time.Hour)})
	p := planter{store, client, table, mayfly().options}
	want := map[string]any{
		"id": "orders#4711", "status": "INPROGRESS", "owner": "mine",
		"in_progress_until": "N 1773495967", "expires_at": "N 1773499507",
	}
	if diff := cmp.Diff(want, attributes(p.item(t, "orders#4711"))); diff != "" {
		t.Errorf("item of a claim (-want +got):\n%s", diff)
	}
}

// TestLeaseInSeconds has leases between two seconds. None may end early, neither for this package nor for a tool that
// compares whole seconds, and none more than a second late.
func TestLeaseInSeconds(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), mayfly().options)
	start := time.Unix(now.Unix()+3600, 0)
	for _, fraction := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 999 * time.Millisecond} {
		for _, skew := range []time.Duration{0, time.Second, 1500 * time.Millisecond} {
			for _, renewed := range []bool{false, true} {
				key := fraction.String() + "/" + skew.String()
				if renewed {
					key += "/renewed"
				}
				t.Run(key, func(t *testing.T) {
					claimAt := func(owner string, now time.Time) (idempotency.ClaimResult, error) {
						return p.Claim(t.Context(), idempotency.ClaimRequest{
							Key: key, Owner: owner, Now: now, Lease: now.Add(time.Minute), Expiry: now.Add(time.Hour), Skew: skew})
					}
					lease := start.Add(time.Minute + fraction)
					end := lease // rounded up
					if fraction > 0 {
						end = start.Add(time.Minute + time.Second)
					}
					result, err := claimAt("first", lease.Add(-time.Minute))
					owner := "first"
					if renewed {
						owner = "renewed"
						if err := p.Renew(t.Context(), idempotency.RenewRequest{
							Key: key, Owner: "first", NewOwner: owner, Now: start, Lease: lease, Expiry: start.Add(time.Hour)}); err != nil {
							t.Fatal(err)
						}
					}
					if err != nil || !result.Claimed || !result.Entry.Lease.Equal(end) {
						t.Fatalf("Claim = %+v, %v; want it claimed until %v", result, err, end)
					}
					for _, early := range []time.Duration{0, time.Millisecond, time.Second} {
						result, err := claimAt("second", end.Add(skew-early))
						if err != nil || result.Claimed || result.Entry.Owner != owner || !result.Entry.Lease.Equal(end) {
							t.Fatalf("%v before the end: Claim = %+v, %v; want it refused by %s until %v", early, result, err, owner, end)
						}
					}
					if result, err = claimAt("second", end.Add(skew+time.Millisecond)); err != nil || !result.Claimed || !result.TookOver {
						t.Fatalf("a millisecond after the end: Claim = %+v, %v; want it taken over", result, err)
					}
				})
			}
		}
	}
}

// TestLeaseInTheOtherUnit has a lease in milliseconds where seconds are kept. It is an error that says so.
func TestLeaseInTheOtherUnit(t *testing.T) {
	p := newPlanter(t, dynamotest.Client(t), mayfly().options)
	item := p.key("k")
	item["status"], item["expires_at"], item["in_progress_until"] = s("INPROGRESS"), n(now.Unix()-1), n(1773495967123)
	p.put(t, item)
	result, err := p.Claim(t.Context(), claimRequest("k", "mine"))
	const want = `attribute "in_progress_until" is 1773495967123; want epoch seconds`
	if result.Claimed || !isUndecided(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("Claim = %+v, %v; want an undecided error with %s", result, err, want)
	}
}
