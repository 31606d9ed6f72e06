package jmespath

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/jmespath-community/go-jmespath/pkg/functions"
)

// orNull is a function of a string that makes null of null.
func orNull(f func(text string) (any, error)) functions.JpFunction {
	return func(arguments []any) (any, error) {
		if arguments[0] == nil {
			return nil, nil
		}
		text, ok := arguments[0].(string)
		if !ok {
			return nil, problemf("it fails for %s, want (string)", kinds(arguments))
		}
		value, err := f(text)
		if err != nil {
			return nil, &problem{err}
		}
		return value, nil
	}
}

// decodeBase64 returns the text that is encoded.
func decodeBase64(text string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("its argument is no base64: %w", err)
	}
	return textOf(data)
}

// inflateBase64 returns the text that is encoded and compressed.
func inflateBase64(text string, most int) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("its argument is no base64: %w", err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("its argument is no gzip: %w", err)
	}
	inflated, err := io.ReadAll(io.LimitReader(reader, int64(most)+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("its argument is no gzip: %w", err)
	case len(inflated) > most:
		return "", fmt.Errorf("its argument has more than %d bytes when it is inflated, want no more than Options.MaxInflated", most)
	}
	return textOf(inflated)
}

var errNoText = errors.New("its argument is no UTF-8 when it is decoded, want text")

func textOf(data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", errNoText
	}
	return string(data), nil
}
