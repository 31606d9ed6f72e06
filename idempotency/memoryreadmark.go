package idempotency

import (
	"context"
	"slices"
)

var _ Marker = (*MemoryStore)(nil)

// FindAll implements Marker. A store without room for a key says ErrStoreFull, since its work could not be marked.
func (s *MemoryStore) FindAll(ctx context.Context, requests []FindRequest) []FindAnswer {
	answers := make([]FindAnswer, len(requests))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range requests {
		e, held := s.entries[r.Key]
		switch {
		case ctx.Err() != nil:
			answers[i].Err = ctx.Err()
		case !held:
			if !s.makeRoom(r.Now, r.Skew) {
				answers[i].Err = ErrStoreFull
			}
		case !free(&e, r.Now, r.Skew):
			answers[i].Entry = cloned(e)
		}
	}
	return answers
}

// MarkAll implements Marker.
func (s *MemoryStore) MarkAll(ctx context.Context, requests []MarkRequest) []error {
	return each(requests, func(r MarkRequest) error { return s.mark(ctx, r) })
}

func (s *MemoryStore) mark(ctx context.Context, r MarkRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	e, held := s.entries[r.Key]
	switch {
	case held && !free(&e, r.Now, r.Skew):
		return r.RefusedBy(&e)
	case !held && !s.makeRoom(r.Now, r.Skew):
		return ErrStoreFull
	}
	s.set(r.Key, Entry{
		Status:      Completed,
		Owner:       r.Owner,
		Fingerprint: r.Fingerprint,
		Expiry:      wholeSeconds(r.Expiry),
		Data:        slices.Clone(r.Data),
	})
	return nil
}
