package batch

// twins finds records of one batch that are the same work: those with the same key, or with the same ID where they have
// no key. Keys and IDs are not mixed, as one may look like the other.
type twins struct {
	records     []Record
	byKey, byID index
}

func newTwins(records []Record) twins {
	return twins{
		records: records,
		byKey:   index{name: func(i int32) string { return records[i].Key }},
		byID:    index{name: func(i int32) string { return records[i].ID }},
	}
}

// leader returns the record that i follows, or -1 if i is the first with its key and leads from now on. The record has a
// key or an ID.
func (t *twins) leader(i int) int {
	x, name := &t.byKey, t.records[i].Key
	if name == "" {
		x, name = &t.byID, t.records[i].ID
	}
	s := x.find(name, len(t.records))
	if s.record > 0 {
		return int(s.record - 1)
	}
	s.record = int32(i + 1)
	return -1
}
