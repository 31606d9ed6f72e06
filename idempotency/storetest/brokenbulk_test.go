package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest/internal/broken"
)

func TestBulkOverMemoryStore(t *testing.T) {
	Test(t, func(testing.TB) idempotency.Store { return Bulk(idempotency.NewMemoryStore()) })
}

// TestBulkValidate has a store that is wrong be so behind Bulk as well.
func TestBulkValidate(t *testing.T) {
	wrong := idempotency.NewMemoryStore(func(o *idempotency.MemoryOptions) { o.MaxEntries = -1 })
	if _, err := idempotency.New("orders", Bulk(wrong)); err == nil || !strings.Contains(err.Error(), "MaxEntries is -1") {
		t.Errorf("error is %v, want that of the store", err)
	}
	if _, err := idempotency.New("orders", Bulk(broken.NewStore(broken.None))); err != nil {
		t.Errorf("error is %v, want none", err)
	}
}

// TestVariantsHideNothing has each broken store noticed by its check in each variant as well.
func TestVariantsHideNothing(t *testing.T) {
	for _, test := range storeFaults {
		for _, c := range storeChecks {
			if c.name != test.check {
				continue
			}
			for _, v := range variants {
				r := record(t, func(t testing.TB) {
					c.run(t, newSuite(t, v.store(t, bulkHarness{Bulk(broken.NewStore(test.fault))})))
				})
				if !r.Failed() {
					t.Errorf("%s: %q passes in %q", test.fault, c.name, v.name)
				}
			}
		}
	}
}

// bulkHarness has a broken store be a BulkStore, a Planter and a Limiter.
type bulkHarness struct{ idempotency.BulkStore }

func (p bulkHarness) Plant(t testing.TB, key string, e idempotency.Entry) {
	p.BulkStore.(serial).Store.(Planter).Plant(t, key, e)
}

func (p bulkHarness) Limited(t testing.TB, maxEntries int) idempotency.Store {
	limited := p.BulkStore.(serial).Store.(Limiter).Limited(t, maxEntries)
	return bulkHarness{Bulk(limited)}
}

// bulkFault is a BulkStore that is wrong in how it treats many.
type bulkFault struct {
	idempotency.BulkStore
	claims func(s idempotency.BulkStore, ctx context.Context, r []idempotency.ClaimRequest) []idempotency.ClaimAnswer
	errs   func([]error) []error // what it does to other answers
	sizes  func() idempotency.BulkSizes
	keep   bool // whether it changes what it was given
}

func (s *bulkFault) BulkSizes() idempotency.BulkSizes {
	if s.sizes != nil {
		return s.sizes()
	}
	return s.BulkStore.BulkSizes()
}

func (s *bulkFault) ClaimAll(ctx context.Context, r []idempotency.ClaimRequest) []idempotency.ClaimAnswer {
	if s.claims != nil {
		return s.claims(s.BulkStore, ctx, r)
	}
	return s.BulkStore.ClaimAll(ctx, r)
}

func (s *bulkFault) answer(errs []error) []error {
	if s.errs != nil {
		return s.errs(errs)
	}
	return errs
}

func (s *bulkFault) CompleteAll(ctx context.Context, r []idempotency.CompleteRequest) []error {
	errs := s.answer(s.BulkStore.CompleteAll(ctx, r))
	if s.keep {
		slices.Reverse(r)
	}
	return errs
}

func (s *bulkFault) ReleaseAll(ctx context.Context, r []idempotency.ReleaseRequest) []error {
	return s.answer(s.BulkStore.ReleaseAll(ctx, r))
}

func (s *bulkFault) RenewAll(ctx context.Context, r []idempotency.RenewRequest) []error {
	return s.answer(s.BulkStore.RenewAll(ctx, r))
}

type (
	claimRequests = []idempotency.ClaimRequest
	claimAnswers  = []idempotency.ClaimAnswer
)

// TestBrokenBulkStores proves that each check of bulk stores notices what it is there for, and that none is idle.
func TestBrokenBulkStores(t *testing.T) {
	sizes := 0
	noticed := make(map[string]bool)
	for _, test := range []struct {
		name  string
		fault bulkFault
		check string
	}{
		{"sizes change", bulkFault{sizes: func() idempotency.BulkSizes {
			sizes++
			return idempotency.BulkSizes{Claims: sizes, Settle: 1}
		}}, "sizes"},
		{"an answer to nothing", bulkFault{errs: func(errs []error) []error { return append(errs, nil) }}, "nothing"},
		{"an answer is missing", bulkFault{errs: func(errs []error) []error { return errs[:max(len(errs)-1, 0)] }}, "transitions in order"},
		{"answers in another order", bulkFault{errs: func(errs []error) []error {
			slices.Reverse(errs)
			return errs
		}}, "transitions in order"},
		{"one error is all requests'", bulkFault{errs: func(errs []error) []error {
			for _, err := range errs {
				if err != nil {
					return slices.Repeat([]error{err}, len(errs))
				}
			}
			return errs
		}}, "transitions in order"},
		{"errors are lost", bulkFault{errs: func(errs []error) []error { return make([]error, len(errs)) }}, "context done"},
		{"claims in another order", bulkFault{
			claims: func(s idempotency.BulkStore, ctx context.Context, r claimRequests) claimAnswers {
				answers := s.ClaimAll(ctx, r)
				slices.Reverse(answers)
				return answers
			}}, "claims in order"},
		{"a refused claim refuses all", bulkFault{
			claims: func(s idempotency.BulkStore, ctx context.Context, r claimRequests) claimAnswers {
				answers := s.ClaimAll(ctx, r)
				for _, a := range answers {
					if !a.Claimed {
						for i := range answers {
							answers[i].Claimed = false
						}
					}
				}
				return answers
			}}, "claims in order"},
		{"asked first, results are another's", bulkFault{
			claims: func(s idempotency.BulkStore, ctx context.Context, r claimRequests) claimAnswers {
				answers := s.ClaimAll(ctx, r)
				for i := range answers {
					if r[i].AskFirst {
						answers[i].Entry.Data = answers[0].Entry.Data
					}
				}
				return answers
			}}, "1,000 keys"},
		{"no more than the size", bulkFault{
			claims: func(s idempotency.BulkStore, ctx context.Context, r claimRequests) claimAnswers {
				answers := make(claimAnswers, len(r))
				copy(answers, s.ClaimAll(ctx, r[:min(len(r), 100)]))
				return answers
			}}, "1,000 keys"},
		{"one key twice is granted twice", bulkFault{
			claims: func(s idempotency.BulkStore, ctx context.Context, r claimRequests) claimAnswers {
				answers := s.ClaimAll(ctx, r)
				for i := range r {
					for j := range i {
						if r[i].Key == r[j].Key && answers[j].Claimed {
							answers[i].Claimed = true
						}
					}
				}
				return answers
			}}, "one key twice"},
		{"requests are changed", bulkFault{keep: true}, "requests are kept"},
		{"the context is lost", bulkFault{
			claims: func(s idempotency.BulkStore, _ context.Context, r claimRequests) claimAnswers {
				return s.ClaimAll(context.Background(), r)
			}}, "context done"},
		{"claims of two calls are both granted", bulkFault{
			claims: func(s idempotency.BulkStore, ctx context.Context, r claimRequests) claimAnswers {
				answers := s.ClaimAll(ctx, r)
				for i, a := range answers {
					if !a.Claimed && a.Entry.Status == idempotency.InProgress && len(r) == 200 {
						answers[i] = idempotency.ClaimAnswer{ClaimResult: idempotency.ClaimResult{Claimed: true}}
					}
				}
				return answers
			}}, "two callers of 200 keys"},
	} {
		failed := make(map[string]bool)
		for _, c := range bulkChecks {
			fault := test.fault
			fault.BulkStore = Bulk(idempotency.NewMemoryStore())
			r := record(t, func(t testing.TB) { c.run(t, newSuite(t, &fault), &fault) })
			if r.Failed() {
				failed[c.name], noticed[c.name] = true, true
			}
		}
		if !failed[test.check] {
			t.Errorf("%s: %q passes, and is there to notice this", test.name, test.check)
		}
	}
	for _, c := range bulkChecks {
		if !noticed[c.name] {
			t.Errorf("no broken store fails %q", c.name)
		}
	}
}
