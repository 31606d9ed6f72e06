package powertools_test

import (
	"testing"

	"github.com/oncekit/oncekit/idempotency/powertools"
)

func BenchmarkKey(b *testing.B) {
	const order = `{"user":{"id":"u-1","tags":["x","Y"],"address":{"zip":"01234","City":"Köln"}},"amount":10.50,"currency":"EUR"}`
	for _, value := range []string{`"059f36b4-87a3-44ab-83d2-661975830a7d"`, order} {
		for l := powertools.TypeScript; l <= powertools.Java; l++ {
			keys := newKeys(b, l)
			name := l.String() + "/id"
			if value == order {
				name = l.String() + "/order"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := keys.Key([]byte(value)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
