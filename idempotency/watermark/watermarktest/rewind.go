package watermarktest

import (
	"time"

	"github.com/oncekit/oncekit/idempotency/watermark"
)

func rewindTo(t reporter, s *suite) {
	key := newKey()
	r := s.claim(t, "absent shard", key, s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("10")))
	for _, to := range []watermark.Position{
		whole("9"), {Sequence: "9", Sub: 2}, whole("10"), whole("100"), none, none, whole("007"), {Sequence: "0"},
	} {
		s.mustRewind(t, "free shard", rewind(key, s.start, to))
		r = s.claim(t, "after the rewind", key, s.start, to)
		s.mustAdvance(t, "the next owner", release(r, none))
	}
}

func rewindAbsent(t reporter, s *suite) {
	for _, to := range []watermark.Position{whole("10"), none} {
		key := newKey()
		s.mustRewind(t, "absent shard", rewind(key, s.start, to))
		s.claim(t, "after the rewind", key, s.start, to)
	}
}

// rewindDuringClaim takes the shard from a holder that knows nothing of it. Whatever that does next is refused, also
// where it would change nothing.
func rewindDuringClaim(t reporter, s *suite) {
	for _, to := range []watermark.Position{whole("3"), whole("5"), whole("100"), none} {
		r := s.claim(t, "absent shard", newKey(), s.start, none)
		s.mustAdvance(t, "the holder", advance(r, whole("5")))
		s.mustRewind(t, "held shard", rewind(r.Key, s.start, to))
		for _, next := range []watermark.Position{whole("6"), whole("5"), whole("1"), none} {
			s.wantLost(t, "the holder, rewound to "+to.String(), advance(r, next))
			s.wantLost(t, "the holder who releases, rewound to "+to.String(), release(r, next))
		}
		next := s.claim(t, "free at once", r.Key, s.start, to)
		s.wantLost(t, "the former holder", release(r, whole("6")))
		s.wantHeld(t, "the next owner", next, s.start, to)
	}
}

// rewindClaimedAgain goes forward again from where the position was set to.
func rewindClaimedAgain(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("10")))
	s.mustRewind(t, "back", rewind(r.Key, s.start, whole("5")))
	r = s.claim(t, "after the rewind", r.Key, s.start, whole("5"))
	s.mustAdvance(t, "forward again", release(r, whole("6")))
	s.claim(t, "afterwards", r.Key, s.start, whole("6"))
}

func rewindExpiry(t reporter, s *suite) {
	for _, held := range []bool{false, true} {
		key := newKey()
		if held {
			s.claim(t, "absent shard", key, s.start, none)
		}
		r := rewind(key, s.start, whole("5"))
		s.mustRewind(t, "rewind", r)
		next := s.claim(t, "at the expiry", key, r.Expiry, whole("5"))
		r.Now, r.Expiry = next.Now, next.Expiry.Add(-time.Minute)
		s.mustRewind(t, "rewind again", r)
		s.claim(t, "a second after the expiry", key, r.Expiry.Add(time.Second), none)
	}
}
