package dynamodbstream_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/sources/internal/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(sourcetest.Twice{M: m, InBulk: &inBulk}) }

// inBulk says that the stores of newGuard take many requests in a call.
var inBulk bool
