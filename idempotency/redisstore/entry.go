package redisstore

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// refusal returns the entry because of which a transition was refused, nil if it was made. Of the entry only what the
// script reads is there: where it settles or renews a claim, no fingerprint and no result.
func (s *Store) refusal(key string, reply Reply) (*idempotency.Entry, error) {
	if reply.Err != nil {
		return nil, reply.Err
	}
	if reply.Values[0] == "done" {
		return nil, nil
	}
	e, err := s.entry(key, reply)
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// entry reads a reply that says what is held. A hash that is not of the layout is an error, so that it is neither claimed
// nor replayed.
func (s *Store) entry(key string, reply Reply) (idempotency.Entry, error) {
	r := reader{fields: map[string]string{}}
	pairs := reply.Values[1:]
	if len(pairs)%2 != 0 {
		return idempotency.Entry{}, s.unexpected(key, reply.Values)
	}
	if len(pairs) == 0 {
		return idempotency.Entry{}, nil
	}
	for i := 0; i < len(pairs); i += 2 {
		r.fields[pairs[i]] = pairs[i+1]
	}
	e := idempotency.Entry{
		Owner:       r.fields["owner"],
		Fingerprint: r.fields["fingerprint"],
		Attempts:    int(min(max(r.number("attempts"), 0), math.MaxInt32)),
	}
	if r.has("lease") {
		e.Lease = time.UnixMilli(r.number("lease")).UTC()
	}
	if r.has("expiry") {
		e.Expiry = time.Unix(r.number("expiry"), 0).UTC()
	}
	if data, ok := r.fields["data"]; ok {
		e.Data = []byte(data)
	}
	switch status := r.fields["status"]; {
	case r.err != nil:
	case status == idempotency.InProgress.String():
		e.Status = idempotency.InProgress
	case status == idempotency.Completed.String():
		e.Status = idempotency.Completed
	default:
		r.err = fmt.Errorf("field status is %q, want %s or %s", status, idempotency.InProgress, idempotency.Completed)
	}
	if r.err == nil && e.Expiry.IsZero() && (e.Status == idempotency.Completed || e.Lease.IsZero()) {
		r.err = fmt.Errorf("status is %s and field expiry is missing, want epoch seconds", e.Status)
	}
	if r.err != nil {
		return idempotency.Entry{}, fmt.Errorf("redisstore: %s: %w", s.where(key), r.err)
	}
	return e, nil
}

// reader reads fields and keeps the first error.
type reader struct {
	fields map[string]string
	err    error
}

func (r *reader) has(name string) bool {
	_, ok := r.fields[name]
	return ok
}

// number returns the whole number called name, 0 if there is none.
func (r *reader) number(name string) int64 {
	if !r.has(name) {
		return 0
	}
	n, err := strconv.ParseInt(r.fields[name], 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("field %s is %q, want a whole number", name, r.fields[name])
	}
	return n
}
