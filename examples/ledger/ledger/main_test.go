package ledger

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dynamotest.StopAfter(m)) }
