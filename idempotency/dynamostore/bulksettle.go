package dynamostore

import (
	"context"

	"github.com/oncekit/oncekit/idempotency"
)

// CompleteAll implements idempotency.BulkStore with an UPDATE for each key, 25 to a call. Refused ones are read, 100 to a
// call. A result that only the server can tell not to fit costs two further calls, as does a claim that carries what no
// claim of this process does.
func (s *Store) CompleteAll(ctx context.Context, requests []idempotency.CompleteRequest) []error {
	return settleAll(ctx, s, requests, transition[idempotency.CompleteRequest]{
		kind: completions,
		key:  func(r *idempotency.CompleteRequest) string { return r.Key },
		write: func(v *parameters, r *idempotency.CompleteRequest, w *write) (note error) {
			data, note := s.result(*r)
			start := len(v.list)
			v.add(v.expiry(r.Expiry))
			if data != nil {
				v.add(data)
				w.size = len(r.Data)
			}
			v.key(&s.options, r.Key)
			v.add(v.text(r.Owner), v.now(r.Now))
			w.text = s.bulk.texts.complete[index(data != nil)][index(s.bulk.counted.Load())]
			w.parameters = v.since(start)
			return note
		},
		would: func(r *idempotency.CompleteRequest, e *idempotency.Entry) bool {
			return e.Status == idempotency.InProgress && e.Owner == r.Owner && !expired(*e, r.Now)
		},
		judge: func(r *idempotency.CompleteRequest, e *idempotency.Entry) error { return s.judgeComplete(*r, e) },
		one:   s.Complete,
	})
}

// ReleaseAll implements idempotency.BulkStore with a DELETE for each key, 25 to a call. Refused ones are read, 100 to a
// call. Releases that count attempts are a call each: a statement cannot count.
func (s *Store) ReleaseAll(ctx context.Context, requests []idempotency.ReleaseRequest) []error {
	return settleAll(ctx, s, requests, transition[idempotency.ReleaseRequest]{
		kind: releases,
		key:  func(r *idempotency.ReleaseRequest) string { return r.Key },
		write: func(v *parameters, r *idempotency.ReleaseRequest, w *write) error {
			if r.CountAttempts {
				return nil
			}
			start := len(v.list)
			v.key(&s.options, r.Key)
			v.add(v.text(r.Owner))
			w.text, w.parameters = s.bulk.texts.release, v.since(start)
			return nil
		},
		would: func(r *idempotency.ReleaseRequest, e *idempotency.Entry) bool {
			return e.Status == idempotency.InProgress && e.Owner == r.Owner
		},
		judge: func(r *idempotency.ReleaseRequest, e *idempotency.Entry) error { return s.judgeRelease(*r, e) },
		one:   s.Release,
	})
}

// RenewAll implements idempotency.BulkStore with an UPDATE for each key, 25 to a call. Refused ones are read, 100 to a
// call.
func (s *Store) RenewAll(ctx context.Context, requests []idempotency.RenewRequest) []error {
	return settleAll(ctx, s, requests, transition[idempotency.RenewRequest]{
		kind: renewals,
		key:  func(r *idempotency.RenewRequest) string { return r.Key },
		write: func(v *parameters, r *idempotency.RenewRequest, w *write) error {
			start := len(v.list)
			v.add(v.text(r.NewOwner), v.lease(&s.options, r.Lease), v.expiry(r.Expiry))
			v.key(&s.options, r.Key)
			v.add(v.text(r.Owner), v.now(r.Now))
			w.text, w.parameters = s.bulk.texts.renew, v.since(start)
			return nil
		},
		would: func(r *idempotency.RenewRequest, e *idempotency.Entry) bool {
			return e.Status == idempotency.InProgress && e.Owner == r.Owner && !expired(*e, r.Now)
		},
		judge: func(r *idempotency.RenewRequest, e *idempotency.Entry) error { return s.judgeRenew(*r, e) },
		one:   s.Renew,
	})
}

// transition is what settleAll needs to know of one.
type transition[R any] struct {
	kind bulkKind
	key  func(*R) string
	// write sets the statement. It sets none if there is none that says it. It returns what the answer is if it is applied.
	write func(*parameters, *R, *write) error
	// would reports whether the single call would do it to an entry that a statement was refused for: its conditions allow
	// for more.
	would func(*R, *idempotency.Entry) bool
	// judge returns the answer to a request that the entry has refused.
	judge func(*R, *idempotency.Entry) error
	one   func(context.Context, R) error
}

func settleAll[R any](ctx context.Context, s *Store, requests []R, t transition[R]) []error {
	errs := make([]error, len(requests))
	if s.err != nil {
		for i := range errs {
			errs[i] = s.err
		}
		return errs
	}
	one := func(i int) { errs[i] = t.one(ctx, requests[i]) }
	for _, pass := range passes(len(requests), func(i int) string { return t.key(&requests[i]) }) {
		if s.oneByOne(t.kind) {
			s.each(pass, one)
			continue
		}
		var alone, refusals []int
		var keys []string
		writes := make([]write, 0, len(pass))
		v := newParameters(len(pass), 6, 4)
		for _, i := range pass {
			w := write{request: i, key: t.key(&requests[i])}
			errs[i] = t.write(v, &requests[i], &w)
			if w.text == nil || !s.keyFits(w.key) {
				alone = append(alone, i)
				continue
			}
			writes = append(writes, w)
		}
		s.write(ctx, t.kind, writes)
		for i := range writes {
			switch w := &writes[i]; w.outcome {
			case applied:
			case refused:
				refusals, keys = append(refusals, w.request), append(keys, w.key)
			case single:
				alone = append(alone, w.request)
			default:
				errs[w.request] = w.err
			}
		}
		for j, result := range s.read(ctx, t.kind, keys) {
			i := refusals[j]
			switch {
			case result.outcome == single:
				alone = append(alone, i)
			case result.err != nil:
				errs[i] = result.err
			case t.would(&requests[i], &result.Entry):
				alone = append(alone, i)
			default:
				if err := t.judge(&requests[i], &result.Entry); err != nil {
					errs[i] = err
				}
			}
		}
		s.each(alone, one)
	}
	return errs
}
