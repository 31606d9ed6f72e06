package deadletter_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/batch"
)

// A standard queue gets neither a group, which would be a tenant there, nor a deduplication id, which it refuses.
func TestStandardQueue(t *testing.T) {
	var c client
	r := record("m1")
	r.Lane = "g"
	if err := newSink(t, &c, standardURL).DeadLetter(t.Context(), r, errBoom); err != nil {
		t.Fatal(err)
	}
	if e := c.sent()[0].Entries[0]; e.MessageGroupId != nil || e.MessageDeduplicationId != nil {
		t.Errorf("group is %q and deduplication id %q, want neither", aws.ToString(e.MessageGroupId), aws.ToString(e.MessageDeduplicationId))
	}
	if got := *c.sent()[0].QueueUrl; got != standardURL {
		t.Errorf("queue is %s, want %s", got, standardURL)
	}
}

// legalID is what SQS takes as a MessageGroupId or MessageDeduplicationId.
var legalID = regexp.MustCompile("^[a-zA-Z0-9!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]{1,128}$")

// Records of one lane are one group, whatever their names are; the others are in nobody's way. Deliveries of one record
// are duplicates, and nothing else is.
func TestFIFOQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "ab", "1:a"}), rapid.String(), rapid.StringN(200, 300, -1))
		draw := func(label string) *batch.Record {
			return &batch.Record{
				Source: name.Draw(t, "source"+label), Lane: name.Draw(t, "lane"+label), ID: name.Draw(t, "id"+label),
				Key: name.Draw(t, "key"+label), Value: value("{}"),
			}
		}
		a, b := draw(" of a"), draw(" of b")
		for _, copied := range []struct {
			name string
			set  func()
		}{
			{"source", func() { b.Source = a.Source }}, {"lane", func() { b.Lane = a.Lane }},
			{"id", func() { b.ID = a.ID }}, {"key", func() { b.Key = a.Key }},
		} {
			if rapid.Bool().Draw(t, "same "+copied.name) {
				copied.set()
			}
		}
		var c client
		s := newSink(t, &c, fifoURL)
		for _, r := range []*batch.Record{a, b} {
			if err := s.DeadLetter(t.Context(), r, errBoom); err != nil {
				t.Fatal(err)
			}
		}
		first, second := c.sent()[0].Entries[0], c.sent()[1].Entries[0]
		for _, id := range []*string{first.MessageGroupId, first.MessageDeduplicationId, second.MessageGroupId, second.MessageDeduplicationId} {
			if !legalID.MatchString(aws.ToString(id)) {
				t.Errorf("id is %q, want 1 to 128 characters that SQS takes", aws.ToString(id))
			}
		}
		type relation struct{ SameGroup, Duplicate bool }
		want := relation{
			SameGroup: a.Source == b.Source && a.Lane == b.Lane && (a.Lane != "" || a.ID == b.ID && a.ID != ""),
			Duplicate: a.Source == b.Source && a.ID == b.ID && a.Key == b.Key && a.ID != "",
		}
		got := relation{*first.MessageGroupId == *second.MessageGroupId, *first.MessageDeduplicationId == *second.MessageDeduplicationId}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v and %+v (-want +got):\n%s", a, b, diff)
		}
	})
}

// Names that only look alike when they are put together are different names.
func TestFIFONames(t *testing.T) {
	groups, ids := map[string]string{}, map[string]string{}
	for _, r := range []batch.Record{
		{Source: "a", ID: "bc", Lane: "de"}, {Source: "ab", ID: "c", Lane: "de"}, {Source: "a", ID: "bcd", Lane: "e"}, // in one run: abcde
		{Source: "a", ID: "b", Key: "c", Lane: "x"}, {Source: "a", ID: "bc", Key: "", Lane: "y"}, {Source: "a", ID: "b", Key: "", Lane: "cx"},
		{Source: "ax", ID: "b", Lane: "x"}, {Source: "a", ID: "b", Lane: "xx"},
		{Source: "a", ID: "1:b1:c", Lane: "1:x"}, {Source: "a1:1", ID: "b1:c", Lane: "x1:"},
		{Source: "a", ID: "lane"}, {Source: "a", ID: "z", Lane: "lane"}, // a record without a lane, and a lane of its name
	} {
		record, lane := fmt.Sprintf("%q %q %q", r.Source, r.ID, r.Key), fmt.Sprintf("%q %q", r.Source, r.Lane)
		r.Value = value("{}")
		var c client
		if err := newSink(t, &c, fifoURL).DeadLetter(t.Context(), &r, errBoom); err != nil {
			t.Fatal(err)
		}
		e := c.sent()[0].Entries[0]
		if other, ok := ids[*e.MessageDeduplicationId]; ok && other != record {
			t.Errorf("record %s is taken for %s", record, other)
		}
		if other, ok := groups[*e.MessageGroupId]; ok && other != lane {
			t.Errorf("lane %s is in the group of %s", lane, other)
		}
		ids[*e.MessageDeduplicationId], groups[*e.MessageGroupId] = record, lane
	}
}

// The letters of a lane keep its order, since its records are given up one after the other.
func TestFIFOOrder(t *testing.T) {
	var c client
	s := newSink(t, &c, fifoURL)
	var records []batch.Record
	for i := range 40 {
		r := *record(fmt.Sprintf("%02d", i))
		r.Lane = fmt.Sprint(i % 3)
		records = append(records, r)
	}
	report, err := batch.Process(t.Context(), records, permanent, func(o *batch.Options) {
		o.DeadLetter, o.Logger = s.DeadLetter, silent
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := report.Count(batch.DeadLettered); n != len(records) {
		t.Errorf("%d of %d records are dead-lettered, want all: %v", n, len(records), report.Err(batch.ErrorOnAnyFailure))
	}
	last := map[string]string{}
	for _, in := range c.sent() {
		for i, l := range decode(t, in) {
			group := *in.Entries[i].MessageGroupId
			if l.ID <= last[group] {
				t.Errorf("letter of %s after that of %s in one group, want them in order", l.ID, last[group])
			}
			last[group] = l.ID
		}
	}
	if len(last) != 3 {
		t.Errorf("%d groups, want 3", len(last))
	}
}
