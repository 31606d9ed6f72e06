package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

type (
	findRequests = []idempotency.FindRequest
	findAnswers  = []idempotency.FindAnswer
	markRequests = []idempotency.MarkRequest
)

// markFault is a Marker that is wrong in one way.
type markFault struct {
	*idempotency.MemoryStore
	find func(s *idempotency.MemoryStore, ctx context.Context, r findRequests) findAnswers
	mark func(s *idempotency.MemoryStore, ctx context.Context, r markRequests) []error
}

func (s *markFault) FindAll(ctx context.Context, r findRequests) findAnswers {
	if s.find != nil {
		return s.find(s.MemoryStore, ctx, r)
	}
	return s.MemoryStore.FindAll(ctx, r)
}

func (s *markFault) MarkAll(ctx context.Context, r markRequests) []error {
	if s.mark != nil {
		return s.mark(s.MemoryStore, ctx, r)
	}
	return s.MemoryStore.MarkAll(ctx, r)
}

// Plant implements Planter for the one entry that the checks plant.
func (s *markFault) Plant(t testing.TB, key string, e idempotency.Entry) {
	r := idempotency.ClaimRequest{Key: key, Owner: e.Owner, Now: e.Expiry, Lease: e.Lease, Expiry: e.Expiry}
	if got, err := s.Claim(t.Context(), r); err != nil || !got.Claimed {
		t.Fatalf("plant: %+v, %v", got, err)
	}
}

// changed marks what change has made of each request.
func changed(change func(*idempotency.MarkRequest)) func(*idempotency.MemoryStore, context.Context, markRequests) []error {
	return func(s *idempotency.MemoryStore, ctx context.Context, r markRequests) []error {
		r = slices.Clone(r)
		for i := range r {
			change(&r[i])
		}
		return s.MarkAll(ctx, r)
	}
}

// answering marks, and says what change makes of each answer.
func answering(change func(error) error) func(*idempotency.MemoryStore, context.Context, markRequests) []error {
	return func(s *idempotency.MemoryStore, ctx context.Context, r markRequests) []error {
		errs := s.MarkAll(ctx, r)
		for i, err := range errs {
			errs[i] = change(err)
		}
		return errs
	}
}

// finding finds with what change has made of each request.
func finding(change func(*idempotency.FindRequest)) func(*idempotency.MemoryStore, context.Context, findRequests) findAnswers {
	return func(s *idempotency.MemoryStore, ctx context.Context, r findRequests) findAnswers {
		r = slices.Clone(r)
		for i := range r {
			change(&r[i])
		}
		return s.FindAll(ctx, r)
	}
}

// found finds, and says what change makes of each entry.
func found(change func(*idempotency.Entry)) func(*idempotency.MemoryStore, context.Context, findRequests) findAnswers {
	return func(s *idempotency.MemoryStore, ctx context.Context, r findRequests) findAnswers {
		answers := s.FindAll(ctx, r)
		for i := range answers {
			change(&answers[i].Entry)
		}
		return answers
	}
}

func is(target, other error) func(error) error {
	return func(err error) error {
		if errors.Is(err, target) {
			return other
		}
		return err
	}
}

func TestMarkerWithoutFault(t *testing.T) {
	for _, c := range markChecks {
		t.Run(c.name, func(t *testing.T) {
			fault := &markFault{MemoryStore: idempotency.NewMemoryStore()}
			c.run(t, newSuite(t, fault), fault)
		})
	}
}

// TestBrokenMarkers proves that each check of markers notices what it is there for, and that none is idle.
func TestBrokenMarkers(t *testing.T) {
	noticed := make(map[string]bool)
	for _, test := range []struct {
		name  string
		fault markFault
		check string
	}{
		{"an answer to nothing", markFault{mark: func(s *idempotency.MemoryStore, ctx context.Context, r markRequests) []error {
			return append(s.MarkAll(ctx, r), nil)
		}}, "nothing"},
		{"no condition", markFault{mark: changed(func(r *idempotency.MarkRequest) { r.Skew = -100 * 365 * 24 * time.Hour })},
			"marks against claims"},
		{"no condition, and says otherwise", markFault{
			mark: func(s *idempotency.MemoryStore, ctx context.Context, r markRequests) []error {
				errs := s.MarkAll(ctx, r)
				forced := slices.Clone(r)
				for i := range forced {
					forced[i].Skew = -100 * 365 * 24 * time.Hour
				}
				s.MarkAll(ctx, forced)
				return errs
			}}, "held keys"},
		{"another's is its own", markFault{mark: answering(is(idempotency.ErrAlreadyCompleted, nil))}, "64 marks of one key"},
		{"a claim is a completion", markFault{mark: answering(is(idempotency.ErrClaimLost, idempotency.ErrAlreadyCompleted))},
			"held keys"},
		{"a completion is a claim", markFault{mark: answering(is(idempotency.ErrAlreadyCompleted, idempotency.ErrClaimLost))},
			"one key twice"},
		{"its own is another's", markFault{mark: changed(func(r *idempotency.MarkRequest) { r.Owner = newOwner() })}, "held keys"},
		{"fingerprint lost", markFault{mark: changed(func(r *idempotency.MarkRequest) { r.Fingerprint = "" })}, "free keys"},
		{"fingerprint not compared", markFault{mark: answering(is(idempotency.ErrFingerprintMismatch, idempotency.ErrAlreadyCompleted))},
			"held keys"},
		{"mismatch is not lost", markFault{mark: answering(is(idempotency.ErrFingerprintMismatch, idempotency.ErrFingerprintMismatch))},
			"held keys"},
		{"data lost", markFault{mark: changed(func(r *idempotency.MarkRequest) { r.Data = nil })}, "free keys"},
		{"expiry is another", markFault{mark: changed(func(r *idempotency.MarkRequest) { r.Expiry = r.Expiry.Add(time.Second) })},
			"both sides of the limits"},
		{"mark without skew", markFault{mark: changed(func(r *idempotency.MarkRequest) { r.Skew = 0 })}, "both sides of the limits"},
		{"find without skew", markFault{find: finding(func(r *idempotency.FindRequest) { r.Skew = 0 })}, "both sides of the limits"},
		{"finds what is free", markFault{find: finding(func(r *idempotency.FindRequest) { r.Now = time.Unix(0, 0) })}, "free keys"},
		{"finds no claim", markFault{find: found(func(e *idempotency.Entry) {
			if e.Status == idempotency.InProgress {
				*e = idempotency.Entry{}
			}
		})}, "held keys"},
		{"finds no claim without a lease", markFault{find: found(func(e *idempotency.Entry) {
			if e.Status == idempotency.InProgress && e.Lease.IsZero() {
				*e = idempotency.Entry{}
			}
		})}, "another tool's entries"},
		{"finds no data", markFault{find: found(func(e *idempotency.Entry) { e.Data = nil })}, "free keys"},
		{"finds in another order", markFault{find: func(s *idempotency.MemoryStore, ctx context.Context, r findRequests) findAnswers {
			answers := s.FindAll(ctx, r)
			slices.Reverse(answers)
			return answers
		}}, "1,000 keys"},
		{"marks in another order", markFault{mark: func(s *idempotency.MemoryStore, ctx context.Context, r markRequests) []error {
			slices.Reverse(r)
			return s.MarkAll(ctx, r)
		}}, "one key twice"},
		{"no more than a hundred", markFault{mark: func(s *idempotency.MemoryStore, ctx context.Context, r markRequests) []error {
			errs := make([]error, len(r))
			copy(errs, s.MarkAll(ctx, r[:min(len(r), 100)]))
			return errs
		}}, "1,000 keys"},
		{"the context of a find is lost", markFault{find: func(s *idempotency.MemoryStore, _ context.Context, r findRequests) findAnswers {
			return s.FindAll(context.Background(), r)
		}}, "context done"},
		{"the context of a mark is lost", markFault{mark: func(s *idempotency.MemoryStore, _ context.Context, r markRequests) []error {
			return s.MarkAll(context.Background(), r)
		}}, "context done"},
	} {
		failed := make(map[string]bool)
		for _, c := range markChecks {
			if c.name == "1,000 keys" && c.name != test.check {
				continue // it takes longer than all others
			}
			fault := test.fault
			fault.MemoryStore = idempotency.NewMemoryStore()
			r := record(t, func(t testing.TB) { c.run(t, newSuite(t, &fault), &fault) })
			if r.Failed() {
				failed[c.name], noticed[c.name] = true, true
			}
		}
		if !failed[test.check] {
			t.Errorf("%s: %q passes, and is there to notice this", test.name, test.check)
		}
	}
	for _, c := range markChecks {
		if !noticed[c.name] {
			t.Errorf("no broken store fails %q", c.name)
		}
	}
}
