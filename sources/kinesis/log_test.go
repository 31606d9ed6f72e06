package kinesis_test

import (
	"github.com/oncekit/oncekit/sources/internal/sourcetest"
	"github.com/oncekit/oncekit/sources/kinesis"
)

// logs keeps the lines that a handler logs.
type logs struct{ sourcetest.Logs }

// option makes l the logger of a handler.
func (l *logs) option(o *kinesis.Options) { o.Logger = l.Logger() }
