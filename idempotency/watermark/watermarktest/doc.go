// Package watermarktest is the conformance suite for implementations of watermark.Store.
//
//	func TestConformance(t *testing.T) {
//		watermarktest.Test(t, func(t testing.TB) watermark.Store {
//			return mystore.NewWatermarks(connect(t), "table")
//		})
//	}
//
// Time is part of every request, so the suite waits for nothing: it asks what a store does on both sides of a limit by
// saying so. Keys and owners are random, so stores may share a table that is never emptied. All that is stored expires an
// hour ahead of real time at the earliest, so that a server that deletes what has expired deletes nothing that is needed.
//
// Stores that are broken on purpose prove the suite: a test of this package sees to it that they fail, each in the check
// that is there for it.
package watermarktest
