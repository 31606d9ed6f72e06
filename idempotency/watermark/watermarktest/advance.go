package watermarktest

import (
	"strings"
	"time"

	"github.com/oncekit/oncekit/idempotency/watermark"
)

func advanceOwner(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	stranger := r
	stranger.Owner = newOwner()
	stranger.Expiry = r.Expiry.Add(time.Hour)
	for _, to := range []watermark.Position{whole("5"), none} {
		s.wantLost(t, "a stranger", advance(stranger, to))
		s.wantLost(t, "a stranger who releases", release(stranger, to))
		s.wantHeld(t, "after the stranger", r, s.start, none)
	}
	s.mustAdvance(t, "the owner", advance(r, whole("5")))
	s.wantHeld(t, "after the owner", r, s.start, whole("5"))
	s.mustAdvance(t, "the owner", release(r, whole("6")))
	s.wantLost(t, "a stranger, after the release", advance(stranger, whole("6")))
	s.claim(t, "the stranger's expiry does not count", r.Key, r.Expiry.Add(time.Second), none)
}

func advanceAbsent(t reporter, s *suite) {
	r := claimAt(newKey(), s.start)
	for _, to := range []watermark.Position{whole("5"), none} {
		s.wantLost(t, "absent shard", advance(r, to))
		s.wantLost(t, "absent shard, release", release(r, to))
	}
	s.claim(t, "afterwards", r.Key, s.start, none)
}

func advanceTakenOver(t reporter, s *suite) {
	late := s.claim(t, "absent shard", newKey(), s.start, none)
	next := s.claim(t, "takeover", late.Key, late.Lease.Add(skew+time.Millisecond), none)
	for _, to := range []watermark.Position{whole("5"), none} {
		for _, a := range []watermark.AdvanceRequest{advance(late, to), release(late, to)} {
			s.wantLost(t, "after the takeover", a)
			s.wantHeld(t, "after the late advance", next, next.Now, none)
		}
	}
	s.mustAdvance(t, "the new owner", release(next, whole("7")))
	s.wantLost(t, "after the takeover is over", release(late, whole("5")))
}

// advanceReleased goes on after the shard was given back.
func advanceReleased(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("5")))
	s.wantLost(t, "after the release", advance(r, whole("6")))
	s.wantLost(t, "after the release, release", release(r, whole("6")))
	s.claim(t, "afterwards", r.Key, s.start, whole("5"))
}

func advanceTwice(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", advance(r, whole("5")))
	s.mustAdvance(t, "again", advance(r, whole("5")))
	s.mustAdvance(t, "the owner", advance(r, whole("6")))
	s.mustAdvance(t, "again, long after it was sent", advance(r, whole("5")))
	s.wantHeld(t, "afterwards", r, s.start, whole("6"))
}

func releaseTwice(t reporter, s *suite) {
	for _, to := range []watermark.Position{whole("5"), none} {
		r := s.claim(t, "absent shard", newKey(), s.start, none)
		s.mustAdvance(t, "the owner", release(r, to))
		s.mustAdvance(t, "again", release(r, to))
		s.mustAdvance(t, "an earlier one again", advance(r, to))
		late := release(r, to)
		late.Now = r.Expiry.Add(time.Second)
		late.Expiry = late.Now.Add(expiryTime)
		s.mustAdvance(t, "again, after the expiry", late)
		s.claim(t, "the second request changed nothing", r.Key, late.Now, none)
	}
}

// releaseTwiceClaimed delivers a release again when another owner has the shard: it is not the sender's to release.
func releaseTwiceClaimed(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("5")))
	next := s.claim(t, "next owner", r.Key, s.start, whole("5"))
	s.wantLost(t, "again", release(r, whole("5")))
	s.wantHeld(t, "afterwards", next, s.start, whole("5"))
}

// positionOrder goes from one position to the next, and tries to go back, for pairs that text compares wrongly.
func positionOrder(t reporter, s *suite) {
	long := "49590338271490256608559692538361571095921575989136588898" // 56 digits, as Kinesis makes them
	for _, pair := range []struct{ before, behind watermark.Position }{
		{whole("0"), whole("1")},
		{whole("1"), whole("2")},
		{whole("9"), whole("10")},
		{whole("99"), whole("100")},
		{whole("009"), whole("10")},
		{whole("9"), whole("0010")},
		{whole(long), whole(strings.TrimSuffix(long, "8") + "9")},
		{whole(long), whole("1" + long)},
		{whole("9" + long), whole("10" + long)},
		{whole(strings.Repeat("9", 128)), whole("1" + strings.Repeat("0", 128))},
		{watermark.Position{Sequence: long, Sub: 0}, watermark.Position{Sequence: long, Sub: 1}},
		{watermark.Position{Sequence: long, Sub: 9}, watermark.Position{Sequence: long, Sub: 10}},
		{watermark.Position{Sequence: long, Sub: watermark.Whole - 1}, whole(long)},
		{whole("5"), watermark.Position{Sequence: "6"}},
	} {
		what := pair.before.String() + " before " + pair.behind.String()
		r := s.claim(t, what, newKey(), s.start, none)
		s.mustAdvance(t, what, advance(r, pair.before))
		s.wantHeld(t, what, r, s.start, pair.before)
		s.mustAdvance(t, what, advance(r, pair.behind))
		s.wantHeld(t, what, r, s.start, pair.behind)
		s.mustAdvance(t, what+", back", advance(r, pair.before))
		s.wantHeld(t, what+", back", r, s.start, pair.behind)
		same := pair.behind
		same.Sequence = "00" + same.Sequence
		s.mustAdvance(t, what+", same with zeros", release(r, same))
		s.claim(t, what+", afterwards", r.Key, s.start, pair.behind)
	}
}

// positionKept has the position live through all that happens to its owners.
func positionKept(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	child := watermark.Position{Sequence: "5", Sub: 3}
	s.mustAdvance(t, "the owner", advance(r, child))
	r = s.claim(t, "takeover", r.Key, r.Lease.Add(skew+time.Millisecond), child)
	r = s.claim(t, "second takeover", r.Key, r.Lease.Add(skew+time.Millisecond), child)
	s.mustAdvance(t, "the owner gives back", release(r, none))
	r = s.claim(t, "after the release", r.Key, r.Now, child)
	s.mustAdvance(t, "the owner", release(r, whole("5")))
	s.claim(t, "afterwards", r.Key, r.Now, whole("5"))
}

// positionNeverBack advances to positions behind the one that is reached, as a request does that was long under way, and
// gives the shard back there.
func positionNeverBack(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", advance(r, whole("10")))
	late := advance(r, whole("9"))
	late.Expiry = s.start.Add(time.Second)
	s.mustAdvance(t, "to an earlier position", late)
	r = s.claim(t, "takeover, the late expiry does not count", r.Key, r.Lease.Add(skew+time.Millisecond), whole("10"))
	s.mustAdvance(t, "the owner", release(r, none))

	r = s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "the owner", release(r, whole("10")))
	r = s.claim(t, "next owner", r.Key, s.start, whole("10"))
	s.mustAdvance(t, "to an earlier position", release(r, whole("9")))
	r = s.claim(t, "owner after that", r.Key, s.start, whole("10"))
	s.mustAdvance(t, "to the same position", release(r, whole("10")))
	s.claim(t, "afterwards", r.Key, s.start, whole("10"))
}

// positionNone gives a shard back of which nothing is done.
func positionNone(t reporter, s *suite) {
	r := s.claim(t, "absent shard", newKey(), s.start, none)
	s.mustAdvance(t, "nothing, held on", advance(r, none))
	s.wantHeld(t, "nothing, held on", r, s.start, none)
	s.mustAdvance(t, "nothing", release(r, none))
	r = s.claim(t, "next owner", r.Key, s.start, none)
	zero := watermark.Position{Sequence: "0"}
	s.mustAdvance(t, "sequence number 0 is something", release(r, zero))
	s.claim(t, "afterwards", r.Key, s.start, zero)
}
