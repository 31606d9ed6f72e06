package panics

import "testing"

func TestPasses(t *testing.T) {}

func TestPanics(t *testing.T) { panic("no such order") }
