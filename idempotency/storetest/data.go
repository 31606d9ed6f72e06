package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/idempotency"
)

// fingerprintKept follows a fingerprint through all that can happen to a claim.
func fingerprintKept(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	r.Fingerprint = "5d41402abc4b2a76b9719d911017c592"
	s.mustClaim(t, r)
	s.wantHeld(t, "entry in progress", s.start, r.Key, inProgress(r))

	renew := renewal(r)
	s.mustRenew(t, renew)
	r.Owner, r.Lease, r.Expiry = renew.NewOwner, renew.Lease, renew.Expiry
	s.wantHeld(t, "entry after renewal", s.start, r.Key, inProgress(r))

	c := completion(r, `"done"`)
	s.mustComplete(t, c)
	s.wantHeld(t, "entry after completion", s.start, r.Key, completed(r, c))
}

// ValueKeeper is implemented by a store under test that can keep results as values rather than as bytes. Where
// KeepsValues is true, what comes back is JSON of the same value: the order of members, white space, escapes and the form
// of numbers are the store's. A document that says a name twice has no such value; the store may leave it out if it says so.
type ValueKeeper interface {
	KeepsValues() bool
}

// dataDocuments stores results that a store could take for something else, or write in another way. Results are JSON text
// in UTF-8, so a store may keep them as such, but it gives back the bytes that it was given, unless it is a ValueKeeper.
func dataDocuments(t testing.TB, s *suite) {
	const twice = `{"a":1,"a":2}`
	keeper, ok := s.store.(ValueKeeper)
	values := ok && keeper.KeepsValues()
	for _, data := range []string{
		`""`, `0`, `false`, `[]`, `{}`, `-0`, `1.0`, `1e3`, `0.1`, `9007199254740993`, `123456789012345678901234567890`,
		`{"b":1,"a":2}`, twice, ` { "a" : [ 1 , 2 ] } `, "[1,\n\t2]\n", `"a\u0000b"`, `"\ud83d\ude00 😀"`,
		`"\/\"\\ '"`,
		`"<script>&amp;</script>"`, "\"line separator: \u2028\"", `"2026-11-30T00:00:00Z"`, `"null"`,
		`"\\x00\\xff"`, `{"#data":":data"}`,
		"\"\u00e9 e\u0301\"", "\"\u007f \u0080 \ufffd\"",
	} {
		r := s.claimAt(newKey(), s.start)
		s.mustClaim(t, r)
		c := completion(r, data)
		want := completed(r, c)
		if err := s.store.Complete(s.ctx, c); values && data == twice && errors.Is(err, idempotency.ErrResultNotStored) {
			want.Data = nil
		} else {
			s.wantError(t, "complete with "+data, err, nil)
		}
		got := s.mustRefuse(t, s.claimAt(r.Key, s.start))
		if values && sameValue(got.Data, want.Data) {
			got.Data = want.Data
		}
		s.wantEntry(t, "entry completed with "+data, got, want)
	}
}

// sameValue reports whether a and b are JSON of the same value, numbers compared exactly.
func sameValue(a, b []byte) bool {
	x, errX := exactValue(a)
	y, errY := exactValue(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// exactValue decodes a document of JSON, with numbers as something that is equal for equal ones.
func exactValue(data []byte) (any, error) {
	if !json.Valid(data) {
		return nil, errors.New("not JSON") // which a Decoder would take if it begins as one
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	return exactNumbers(value), nil
}

// exactNumber is the text of a number's value. It is none of JSON's strings.
type exactNumber string

func exactNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if exact, ok := new(big.Rat).SetString(v.String()); ok {
			return exactNumber(exact.RatString())
		}
	case []any:
		for i := range v {
			v[i] = exactNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = exactNumbers(v[name])
		}
	}
	return value
}

func dataNone(t testing.TB, s *suite) {
	for _, data := range [][]byte{nil, []byte("null")} {
		r := s.claimAt(newKey(), s.start)
		s.mustClaim(t, r)
		c := completion(r, "")
		c.Data = data
		s.mustComplete(t, c)
		s.wantHeld(t, "entry completed with null or without a result", s.start, r.Key, completed(r, c))
	}
}

// dataLarge completes with 300 KB, which fits in a DynamoDB item, and with 1 MB, which does not. A store may leave out a
// result that is too large for it if it says so. The key is completed in any case.
func dataLarge(t testing.TB, s *suite) {
	for _, size := range []int{300 << 10, 1 << 20} {
		r := s.claimAt(newKey(), s.start)
		s.mustClaim(t, r)
		c := completion(r, `"`+strings.Repeat("x", size-2)+`"`)
		want := completed(r, c)
		switch err := s.store.Complete(s.ctx, c); {
		case errors.Is(err, idempotency.ErrResultNotStored):
			want.Data = nil
		case err != nil:
			t.Fatalf("complete with %d bytes: error is %v, want nil or %v", size, err, idempotency.ErrResultNotStored)
		}
		got := s.mustRefuse(t, s.claimAt(r.Key, s.start))
		if !bytes.Equal(got.Data, want.Data) || (got.Data == nil) != (want.Data == nil) {
			t.Fatalf("complete with %d bytes: %d bytes come back, want the same %d", size, len(got.Data), len(want.Data))
		}
		s.wantEntry(t, "entry completed with a large result", got, want)

		if err := s.store.Complete(s.ctx, c); err != nil && !errors.Is(err, idempotency.ErrResultNotStored) {
			t.Fatalf("complete with %d bytes again: error is %v, want nil or %v", size, err, idempotency.ErrResultNotStored)
		}
	}
}

// dataCopied overwrites what it gave to the store and what it got from it.
func dataCopied(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	s.mustClaim(t, r)
	c := completion(r, `"as it was"`)
	want := completed(r, c)
	want.Data = bytes.Clone(c.Data)
	s.mustComplete(t, c)
	clear(c.Data)
	got := s.mustRefuse(t, s.claimAt(r.Key, s.start))
	s.wantEntry(t, "entry after the caller overwrote its bytes", got, want)
	clear(got.Data)
	s.wantHeld(t, "entry after a reader overwrote its bytes", s.start, r.Key, want)
}

// refusedByCompletion has what a replay needs: the result comes with the refusal.
func refusedByCompletion(t testing.TB, s *suite) {
	r := s.claimAt(newKey(), s.start)
	r.Fingerprint = "f1"
	s.mustClaim(t, r)
	c := completion(r, `{"total":3}`)
	c.Now, c.Expiry = s.start.Add(time.Second), s.start.Add(3*time.Hour)
	s.mustComplete(t, c)
	for i := range 3 {
		now := s.start.Add(time.Duration(i) * time.Minute)
		s.wantEntry(t, "entry of a refused claim", s.mustRefuse(t, s.claimAt(r.Key, now)), completed(r, c))
	}
}
