// Package api shows and hides the JSON package in every way that checkAPI tells apart.
package api

import (
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func Parameter(json.Options) {}

func Inside(map[string][]func(*jsontext.Value) error) {}

func Sequence() iter.Seq[jsontext.Token] { return nil }

var Variable jsontext.Value

type Struct struct {
	Field  json.Options
	hidden json.Options
	Fine   Fine
}

func (*Struct) Method() jsontext.Value { return nil }

type Interface interface{ Decode(*jsontext.Decoder) error }

type Alias = json.Options

type Constraint[T json.Options] struct{}

type embedded struct{ Value jsontext.Value }

type Embeds struct{ embedded }

// Fine uses the JSON package where nobody sees it.
type Fine struct{ options json.Options }

func (f Fine) Decode(b []byte, v any) error { return f.decode(b, v, f.options) }

func (Fine) decode(b []byte, v any, o json.Options) error { return json.Unmarshal(b, v, o) }

func hidden(json.Options) {}

var (
	_ = hidden
	_ = Struct{}.hidden
)
