package idempotency

import (
	"crypto/fips140"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
)

// Hash is a hash function for payloads. The zero value is SHA256.
type Hash uint8

// The hash functions. Whoever chooses a payload can make two with one SHA1 or MD5: they are for keys that
// have to be those of another program, and for payloads of producers that are trusted.
const (
	SHA256 Hash = iota
	SHA512
	SHA1
	MD5
)

// String returns the name, such as "SHA-256".
func (h Hash) String() string {
	switch h {
	case SHA256:
		return "SHA-256"
	case SHA512:
		return "SHA-512"
	case SHA1:
		return "SHA-1"
	case MD5:
		return "MD5"
	}
	return fmt.Sprintf("Hash(%d)", uint8(h))
}

// PayloadHash returns the hash of the payload's canonical JSON in lower-case hexadecimal digits, with nothing before it:
// the number of digits tells hash functions apart. Payloads of the same JSON value have the same hash, whatever their white
// space and the order of their members. See CanonicalJSON for what is the same, and for the payloads that are errors.
//
// It is a key or a fingerprint for the sources' options that take a function of the payload. As a key it is of use only
// where equal payloads are the same work, and where nothing in the payload changes when it is sent again: a request id or
// the time of sending makes every payload another one. It is an error for an unknown h, and for SHA1 and MD5 in a program
// that enforces FIPS 140-3 (https://pkg.go.dev/crypto/fips140).
func (h Hash) PayloadHash(payload []byte) (string, error) {
	c := canonicalizers.Get().(*canonicalizer)
	defer c.free()
	if err := c.run(payload); err != nil {
		return "", err
	}
	return h.sum(c.text)
}

// PayloadHash is SHA256.PayloadHash.
func PayloadHash(payload []byte) (string, error) { return SHA256.PayloadHash(payload) }

func (h Hash) sum(text []byte) (string, error) {
	if (h == SHA1 || h == MD5) && fips140.Enforced() {
		return "", fmt.Errorf("idempotency: hash function is %v, want SHA-256 or SHA-512: the program enforces FIPS 140-3", h)
	}
	switch h {
	case SHA256:
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:]), nil
	case SHA512:
		sum := sha512.Sum512(text)
		return hex.EncodeToString(sum[:]), nil
	case SHA1:
		sum := sha1.Sum(text)
		return hex.EncodeToString(sum[:]), nil
	case MD5:
		sum := md5.Sum(text)
		return hex.EncodeToString(sum[:]), nil
	}
	return "", fmt.Errorf("idempotency: hash function is %v, want SHA256, SHA512, SHA1 or MD5", h)
}
