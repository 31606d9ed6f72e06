package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

var now = time.Unix(time.Now().Unix(), 123_000_000)

func claimRequest(key, owner string) idempotency.ClaimRequest {
	return idempotency.ClaimRequest{
		Key: key, Owner: owner, Fingerprint: "f", Now: now, Lease: now.Add(time.Minute), Expiry: now.Add(time.Hour),
		Skew: time.Second,
	}
}

func counted(r idempotency.ClaimRequest) idempotency.ClaimRequest {
	r.CountAttempts = true
	return r
}

func mustClaim(t testing.TB, store idempotency.Store, r idempotency.ClaimRequest) idempotency.ClaimResult {
	t.Helper()
	result, err := store.Claim(t.Context(), r)
	if err != nil || !result.Claimed {
		t.Fatalf("Claim = %+v, %v; want it claimed", result, err)
	}
	return result
}

// attributes makes items comparable and their differences readable.
func attributes(item map[string]types.AttributeValue) map[string]any {
	m := make(map[string]any)
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			m[name] = v.Value
		case *types.AttributeValueMemberN:
			m[name] = "N " + v.Value
		case *types.AttributeValueMemberM:
			m[name] = attributes(v.Value)
		default:
			m[name] = fmt.Sprintf("%T", v)
		}
	}
	return m
}

// TestItem holds the layout that other tools and other versions read. The numbers are written out.
func TestItem(t *testing.T) {
	at := time.Date(2026, 3, 14, 13, 45, 7, 123_456_789, time.UTC)
	client := dynamotest.Client(t)
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			p := newPlanter(t, client, l.options)
			o := l.options
			// lease is a lease as it stands in the table, in one unit or the other.
			lease := func(milliseconds, seconds string) string {
				if o.LeaseUnit == time.Second {
					return "N " + seconds
				}
				return "N " + milliseconds
			}
			var data any = `{"a":1}`
			if o.NativeData {
				data = map[string]any{"a": "N 1"}
			}
			check := func(what string, want map[string]any) {
				t.Helper()
				if want != nil {
					want[o.KeyAttribute] = "ns#1"
					if o.SortKeyAttribute != "" {
						want[o.KeyAttribute], want[o.SortKeyAttribute] = partitionOf(o, "ns#1"), "ns#1"
					}
				}
				if diff := cmp.Diff(want, attributes(p.item(t, "ns#1")), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("item after %s (-want +got):\n%s", what, diff)
				}
			}
			r := idempotency.ClaimRequest{
				Key: "ns#1", Owner: "a", Fingerprint: "f", Now: at, Lease: at.Add(time.Minute), Expiry: at.Add(time.Hour),
				CountAttempts: true,
			}
			held := map[string]any{
				o.StatusAttribute: "INPROGRESS", o.OwnerAttribute: "a", o.FingerprintAttribute: "f", o.AttemptsAttribute: "N 1",
				o.LeaseAttribute: lease("1773495967123", "1773495968"), o.ExpiryAttribute: "N 1773499507",
			}
			mustClaim(t, p, r)
			check("a claim that counts", held)

			if err := p.Release(t.Context(), idempotency.ReleaseRequest{Key: r.Key, Owner: "a", Now: at, CountAttempts: true}); err != nil {
				t.Fatal(err)
			}
			check("a release that counts", map[string]any{
				o.StatusAttribute: "INPROGRESS", o.AttemptsAttribute: "N 1", o.LeaseAttribute: "N 0", o.ExpiryAttribute: "N 1773499507",
			})

			r.Owner, r.Fingerprint = "b", ""
			mustClaim(t, p, r)
			delete(held, o.FingerprintAttribute)
			held[o.OwnerAttribute], held[o.AttemptsAttribute] = "b", "N 2"
			check("a second claim, without a fingerprint", held)

			err := p.Renew(t.Context(), idempotency.RenewRequest{
				Key: r.Key, Owner: "b", NewOwner: "c", Now: at, Lease: at.Add(2 * time.Minute), Expiry: at.Add(2 * time.Hour),
			})
			if err != nil {
				t.Fatal(err)
			}
			held[o.OwnerAttribute], held[o.LeaseAttribute], held[o.ExpiryAttribute] = "c", lease("1773496027123", "1773496028"), "N 1773503107"
			check("a renewal", held)

			err = p.Complete(t.Context(), idempotency.CompleteRequest{
				Key: r.Key, Owner: "c", Now: at, Expiry: at.Add(24 * time.Hour), Data: []byte(`{"a":1}`),
			})
			if err != nil {
				t.Fatal(err)
			}
			check("a completion", map[string]any{
				o.StatusAttribute: "COMPLETED", o.OwnerAttribute: "c", o.DataAttribute: data, o.ExpiryAttribute: "N 1773582307",
			})

			r.Owner, r.CountAttempts = "d", false
			r.Now = at.Add(25 * time.Hour)
			r.Lease, r.Expiry = r.Now.Add(time.Minute), r.Now.Add(time.Hour)
			mustClaim(t, p, r)
			check("a claim after the expiry", map[string]any{
				o.StatusAttribute: "INPROGRESS", o.OwnerAttribute: "d", o.LeaseAttribute: lease("1773585967123", "1773585968"), o.ExpiryAttribute: "N 1773589507",
			})
			if err := p.Release(t.Context(), idempotency.ReleaseRequest{Key: r.Key, Owner: "d", Now: r.Now}); err != nil {
				t.Fatal(err)
			}
			check("a release", nil)
		})
	}
}

// TestItemOfAnotherLayout plants what this package never writes. It is neither claimed nor replayed, and the error
// says what it is.
func TestItemOfAnotherLayout(t *testing.T) {
	past, future := now.Add(-time.Hour), now.Add(time.Hour)
	for _, test := range []struct {
		name string
		item map[string]types.AttributeValue
		want string
	}{
		{"unknown status", map[string]types.AttributeValue{"status": s("EXPIRED"), "expiration": n(past.Unix())},
			`attribute "status" is "EXPIRED"; want "INPROGRESS" or "COMPLETED"`},
		{"no status", map[string]types.AttributeValue{"expiration": n(past.Unix())},
			`attribute "status" is ""; want "INPROGRESS" or "COMPLETED"`},
		{"status is a number", map[string]types.AttributeValue{"status": n(1), "expiration": n(past.Unix())},
			`attribute "status" has type N; want S`},
		{"expiry is a string", map[string]types.AttributeValue{"status": s("COMPLETED"), "expiration": s("1")},
			`attribute "expiration" has type S; want N`},
		{"expiry is a fraction", map[string]types.AttributeValue{
			"status": s("COMPLETED"), "expiration": &types.AttributeValueMemberN{Value: "99999999999.5"}},
			`attribute "expiration" is 99999999999.5; want a whole number`},
		{"completed without expiry", map[string]types.AttributeValue{"status": s("COMPLETED")},
			`status is COMPLETED and attribute "expiration" is missing`},
		{"in progress without lease and expiry", map[string]types.AttributeValue{"status": s("INPROGRESS")},
			`status is INPROGRESS and attribute "expiration" is missing`},
		{"lease is a string", map[string]types.AttributeValue{
			"status": s("INPROGRESS"), "expiration": n(past.Unix()), "in_progress_expiration": s("1")},
			`attribute "in_progress_expiration" has type S; want N`},
		{"lease is null", map[string]types.AttributeValue{
			"status": s("INPROGRESS"), "expiration": n(past.Unix()), "in_progress_expiration": &types.AttributeValueMemberNULL{Value: true}},
			`attribute "in_progress_expiration" has type NULL; want N`},
		{"owner is a number", map[string]types.AttributeValue{
			"status": s("INPROGRESS"), "expiration": n(future.Unix()), "in_progress_expiration": n(future.UnixMilli()), "owner": n(1)},
			`attribute "owner" has type N; want S`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
			planted := p.key("k")
			for name, v := range test.item {
				planted[name] = v
			}
			p.put(t, planted)
			for name, do := range map[string]func(context.Context) error{
				"claim": func(ctx context.Context) error {
					result, err := p.Claim(ctx, claimRequest("k", "mine"))
					if result.Claimed {
						t.Error("claimed")
					}
					return err
				},
				"claim that counts": func(ctx context.Context) error {
					result, err := p.Claim(ctx, counted(claimRequest("k", "mine")))
					if result.Claimed {
						t.Error("claimed")
					}
					return err
				},
				"complete": func(ctx context.Context) error {
					return p.Complete(ctx, idempotency.CompleteRequest{Key: "k", Owner: "mine", Now: now, Expiry: future})
				},
				"release": func(ctx context.Context) error {
					return p.Release(ctx, idempotency.ReleaseRequest{Key: "k", Owner: "mine", Now: now})
				},
				"renew": func(ctx context.Context) error {
					return p.Renew(ctx, idempotency.RenewRequest{
						Key: "k", Owner: "mine", NewOwner: "new", Now: now, Lease: future, Expiry: future})
				},
			} {
				err := do(t.Context())
				if !isUndecided(err) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: error is %v; want an undecided one with %s", name, err, test.want)
				}
			}
			if diff := cmp.Diff(attributes(planted), attributes(p.item(t, "k"))); diff != "" {
				t.Errorf("the item was changed (-want +got):\n%s", diff)
			}
		})
	}
}

// isUndecided reports whether err leaves open whether the transition happened: an error that is none of idempotency's.
func isUndecided(err error) bool {
	for _, decided := range []error{
		idempotency.ErrInProgress, idempotency.ErrFingerprintMismatch, idempotency.ErrClaimLost, idempotency.ErrKeyMissing,
		idempotency.ErrAlreadyCompleted, idempotency.ErrResultNotStored, idempotency.ErrStoreFull, idempotency.ErrStoreUnusable,
		idempotency.ErrLeaseTooShort,
	} {
		if errors.Is(err, decided) {
			return false
		}
	}
	return err != nil
}

// TestPlantedAttempts plants counts that no Store writes. A claim counts on from the nearest that can be one, and is told
// of the entry in its way all the same, unless its count is no number of this world.
func TestPlantedAttempts(t *testing.T) {
	for _, test := range []struct {
		planted string
		claimed int // attempts of the next claim that counts
		held    int // attempts of the entry while it is held
		err     string
	}{
		{"2", 3, 2, ""},
		{"-7", 1, 0, ""},
		{"9223372036854775807", 1 << 31, 1<<31 - 1, ""},
		{"1E30", 1 << 31, 0, `attribute "attempts" is 1000000000000000000000000000000; want a whole number`},
	} {
		t.Run(test.planted, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, dynamotest.Client(t), layouts()[0].options)
			claimAt := func(lease time.Time) (idempotency.ClaimResult, error) {
				item := p.key("k")
				item["status"], item["expiration"] = s("INPROGRESS"), n(now.Add(time.Hour).Unix())
				item["in_progress_expiration"] = n(lease.UnixMilli())
				item["attempts"] = &types.AttributeValueMemberN{Value: test.planted}
				p.put(t, item)
				return p.Claim(t.Context(), counted(claimRequest("k", "mine")))
			}
			got, err := claimAt(time.UnixMilli(0))
			if err != nil || !got.Claimed || got.Entry.Attempts != test.claimed {
				t.Errorf("free: Claim = %+v, %v; want it claimed with attempt %d", got, err, test.claimed)
			}
			got, err = claimAt(now.Add(time.Minute))
			if got.Claimed || got.Entry.Attempts != test.held {
				t.Errorf("held: Claim = %+v; want it refused by an entry with %d attempts", got, test.held)
			}
			if (err != nil) != (test.err != "") || err != nil && (!isUndecided(err) || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("held: error is %v; want %q", err, test.err)
			}
		})
	}
}
