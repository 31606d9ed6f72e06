package audit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/audit/audit"
)

func TestDifferences(t *testing.T) {
	placed := &audit.Order{ID: "a", Version: 1, Customer: "ada", Status: "placed", Total: 8900}
	for _, test := range []struct {
		name          string
		before, after *audit.Order
		want          []audit.Difference
	}{
		{"nothing", placed, placed, nil},
		{"the version alone", placed, &audit.Order{ID: "a", Version: 2, Customer: "ada", Status: "placed", Total: 8900}, nil},
		{"a new order", nil, placed, []audit.Difference{
			{Attribute: "customer", To: "ada"}, {Attribute: "status", To: "placed"}, {Attribute: "total", To: "8900"},
		}},
		{"a deleted order", placed, nil, []audit.Difference{
			{Attribute: "customer", From: "ada"}, {Attribute: "status", From: "placed"}, {Attribute: "total", From: "8900"},
		}},
		{"a free order", placed, &audit.Order{ID: "a", Version: 2, Customer: "ada", Status: "placed"}, []audit.Difference{
			{Attribute: "total", From: "8900", To: "0"},
		}},
		{"an order that is to expire", placed,
			&audit.Order{ID: "a", Version: 2, Customer: "ada", Status: "held", Total: 8900, ExpiresAt: 1796083200},
			[]audit.Difference{
				{Attribute: "status", From: "placed", To: "held"}, {Attribute: "expires", To: "2026-12-01T00:00:00Z"},
			}},
	} {
		if diff := cmp.Diff(test.want, audit.Differences(test.before, test.after)); diff != "" {
			t.Errorf("%s: differences (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestChangeIDsSort checks that the names of changes sort as their numbers do, of whatever length these are.
func TestChangeIDsSort(t *testing.T) {
	var ids []string
	for _, number := range []string{
		"9", "10", "100000000003459374629", "4421584500000000017450439091", "4421584500000000017450439092",
	} {
		ids = append(ids, audit.Entry{EventID: "f", SequenceNumber: number, At: time.Now()}.ChangeID())
	}
	if !slices.IsSorted(ids) {
		t.Errorf("the names do not sort: %q", ids)
	}
	one, other := audit.Entry{EventID: "a", SequenceNumber: "9"}, audit.Entry{EventID: "b", SequenceNumber: "9"}
	if one.ChangeID() == other.ChangeID() {
		t.Errorf("two changes have the name %q", one.ChangeID())
	}
}
