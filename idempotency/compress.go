package idempotency

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"sync"
)

const (
	// compressOver is how many bytes a result has that is worth trying: one below costs DynamoDB a write unit or two.
	compressOver = 1 << 10
	// maxInflated is how many bytes a compressed result can have. A few hundred KB of gzip can hold hundreds of MB, which
	// would take all of the process's memory. A function's answer has at most 6 MB
	// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
	maxInflated = 8 << 20
)

// compressors are kept since a new one allocates several hundred KB.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// compress returns data as a marked gzip, and nil if that would be no shorter.
func compress(data []byte) ([]byte, error) {
	if len(data) <= compressOver || len(data) > maxInflated {
		return nil, nil
	}
	var text bytes.Buffer
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	w.Reset(encoder)
	for _, f := range []func() error{
		func() error { _, err := w.Write(data); return err }, w.Close, encoder.Close,
	} {
		if err := f(); err != nil { // never, into a buffer
			return nil, err
		}
	}
	packed, err := mark(markGzip, text.String())
	if err != nil || len(packed) >= len(data) {
		return nil, err
	}
	return packed, nil
}

// decompress reads all of a gzip in base64, with its checksum, and no more than maxInflated bytes of it.
func decompress(text string) ([]byte, error) {
	zipped, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxInflated+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxInflated {
		return nil, fmt.Errorf("it is more than %d bytes inflated, want no more", maxInflated)
	}
	return data, nil
}
