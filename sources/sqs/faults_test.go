package sqs_test

import "github.com/oncekit/oncekit/sources/internal/sourcetest"

type faults = sourcetest.Faults
