package kinesis

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// isGzip tells gzip data by their header: two bytes of magic, and deflate, which is the only method there is
// (https://www.rfc-editor.org/rfc/rfc1952#section-2.3.1).
func isGzip(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b, 8}) }

// inflate returns what is in gzip data, of which it keeps nothing. More than limit bytes are an error, and are not
// inflated.
func inflate(data []byte, limit int) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	inflated, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(inflated) > limit {
		return nil, fmt.Errorf("inflated size is more than %d bytes, want at most Options.MaxInflated, which is that", limit)
	}
	return inflated, nil
}
