package batch

import "hash/maphash"

// index finds a record by a name that it has: its lane, its key, its ID. It is a hash table of fixed size that is made in
// one allocation for all records of a batch; a map costs three times as much here, which is most of what the engine
// spends on a record.
type index struct {
	seed  maphash.Seed
	slots []slot // twice as many as records, at least
	name  func(i int32) string
}

type slot struct {
	hash   uint32
	record int32 // its index plus one, 0: the slot is empty
}

// find returns the slot of name, which is empty if no record has it. The caller may fill an empty slot, and put another
// record with the same name into a full one.
func (x *index) find(name string, records int) *slot {
	if x.slots == nil {
		size := 8
		for size < 2*records {
			size *= 2
		}
		x.slots, x.seed = make([]slot, size), maphash.MakeSeed()
	}
	hash := maphash.String(x.seed, name)
	mask := uint64(len(x.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := &x.slots[at]
		if s.record == 0 {
			s.hash = uint32(hash >> 32)
			return s
		}
		if s.hash == uint32(hash>>32) && x.name(s.record-1) == name {
			return s
		}
	}
}
