package dynamodbstream_test

import (
	"github.com/oncekit/oncekit/sources/dynamodbstream"
	"github.com/oncekit/oncekit/sources/internal/sourcetest"
)

// logs keeps the lines that a handler logs.
type logs struct{ sourcetest.Logs }

// option makes l the logger of a handler.
func (l *logs) option(o *dynamodbstream.Options) { o.Logger = l.Logger() }
