package payload

import "sync"

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Borrow returns a buffer to decode a payload's text in, and to be given back by Return.
func Borrow() *[]byte { return buffers.Get().(*[]byte) }

// Return takes a buffer back. Its bytes may be overwritten from now on.
func Return(buffer *[]byte) { buffers.Put(buffer) }
