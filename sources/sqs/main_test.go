package sqs_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/sources/internal/sourcetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(dynamotest.StopAfter(sourcetest.Twice{M: m, InBulk: &inBulk}))
}

// inBulk says that the stores of newGuard take many requests in a call.
var inBulk bool
