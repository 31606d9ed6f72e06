package kpl_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/oncekit/oncekit/sources/internal/kpl"
)

// BenchmarkDeaggregate measures the whole way from data to user records, beside the digest alone, which nobody can do
// without, and beside the digest and a parser that is written in the usual way with protowire.
func BenchmarkDeaggregate(b *testing.B) {
	for _, shape := range []struct{ records, size int }{{100, 500}, {5000, 200}, {1, 500}, {10000, 20}} {
		var records []kpl.UserRecord
		for i := range shape.records {
			records = append(records, kpl.UserRecord{
				PartitionKey: fmt.Sprintf("customer-%06d", i*7919%997), Data: bytes.Repeat([]byte{'x'}, shape.size),
			})
		}
		data := kpl.Append(nil, records)
		message := data[len(magic) : len(data)-md5.Size]
		for _, way := range []struct {
			name string
			run  func() (records int)
		}{
			{"digest", func() int { md5.Sum(message); return shape.records }},
			{"oncekit", func() int {
				if !kpl.IsAggregate(data) {
					return 0
				}
				got, _ := kpl.Split(data)
				return len(got)
			}},
			{"split", func() int { got, _ := kpl.Split(data); return len(got) }},
			{"protowire", func() int {
				if md5.Sum(message) != [md5.Size]byte(data[len(data)-md5.Size:]) {
					return 0
				}
				got, _ := oracle(message)
				return len(got)
			}},
		} {
			b.Run(fmt.Sprintf("%dx%dB/%s", shape.records, shape.size, way.name), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if got := way.run(); got != shape.records {
						b.Fatalf("there are %d records, want %d", got, shape.records)
					}
				}
			})
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	var records []kpl.UserRecord
	for i := range 100 {
		records = append(records, kpl.UserRecord{PartitionKey: fmt.Sprint(i), Data: make([]byte, 500)})
	}
	var data []byte
	b.ReportAllocs()
	for b.Loop() {
		data = kpl.Append(data[:0], records)
	}
	b.SetBytes(int64(len(data)))
}

func BenchmarkMayBeAggregate(b *testing.B) {
	text := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(`{"click":1}`), 50))
	for b.Loop() {
		if kpl.MayBeAggregate(text) {
			b.Fatal("plain data may be an aggregate")
		}
	}
}
