//go:build linux

package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// TestTail reads a journal while it is written, line by line and within a line.
func TestTail(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j := journal{file: file, worker: 3}
	reader, err := os.Open(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	tail := newTail(reader)
	expect := func(want ...string) {
		t.Helper()
		if err := tail.read(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range tail.keys["k"] {
			state := c.owner + " " + c.settlement
			if c.renewed {
				state += "renewed"
			}
			got = append(got, state)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
	}
	expect()
	j.write(entry{Kind: name(idempotency.EventClaimed), Key: "k", Owner: "a"})
	expect("a ")
	half := []byte(`{"at":1,"worker":3,"kind":"renewed","key":"k","owner":"b"}` + "\n")
	if _, err := file.Write(half[:20]); err != nil {
		t.Fatal(err)
	}
	expect("a ")
	if _, err := file.Write(half[20:]); err != nil {
		t.Fatal(err)
	}
	expect("a renewed", "b ")
	j.write(entry{Kind: name(idempotency.EventCompleted), Key: "k", Owner: "b"})
	expect("a renewed", "b completed")
	if _, err := file.WriteString(`{"at":1,"worker":3,"kind":"claimed","ke`); err != nil { // and is killed
		t.Fatal(err)
	}
	expect("a renewed", "b completed")
	j.write(entry{Kind: name(idempotency.EventTakenOver), Key: "k", Owner: "c"})
	expect("a renewed", "b completed", "c ")
	if tail.torn != 1 {
		t.Errorf("%d lines are torn, want 1", tail.torn)
	}
	if len(tail.wrong) > 0 {
		t.Errorf("wrong: %q", tail.wrong)
	}
	if err := newTail(bytes.NewReader([]byte("{\n"))).read(); err == nil {
		t.Error("a broken line is read without an error")
	}
}
