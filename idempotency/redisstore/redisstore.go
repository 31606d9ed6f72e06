package redisstore

import (
	"context"
	"errors"
	"reflect"

	"github.com/oncekit/oncekit/idempotency"
)

// Client sends commands to a server. Packages goredisclient and rueidisclient make one of a client of those libraries.
// It is safe for concurrent use.
type Client interface {
	// Do sends a command and returns its reply, an array of strings. Where the server answers with an error, the text of
	// the error has the server's answer. Do may send a command again if the reply to it was lost.
	Do(ctx context.Context, c Command) ([]string, error)
}

// Pipeliner is implemented by a Client that can send many commands in one round trip.
type Pipeliner interface {
	Client
	// DoAll does what Do does for each command, in order where they have the same key. The replies are in the order of the
	// commands, one for each. It does not keep the slice.
	DoAll(ctx context.Context, commands []Command) []Reply
}

// Command is EVALSHA or EVAL with one key.
type Command struct {
	Name   string   // "EVALSHA" or "EVAL"
	Script string   // of EVALSHA its SHA-1 digest in hexadecimal, of EVAL its text
	Key    string   // the only key that the script uses
	Args   []string // the further arguments
}

// Reply is the answer to one command of several.
type Reply struct {
	Values []string
	Err    error
}

var (
	_ idempotency.BulkStore = (*Store)(nil)
	_ idempotency.Validator = (*Store)(nil)
)

// Store is an idempotency.Store on a Redis or Valkey server. It is safe for concurrent use.
//
// The errors of its methods name the key. They match idempotency.ErrStoreUnusable where no request can succeed before
// someone changes the configuration: the password is missing or wrong, the user may not run scripts or write the key.
type Store struct {
	client    Client
	pipeliner Pipeliner // the client, nil if it is none
	options   Options
	err       error // what Validate returns

	claim, complete, release, renew, find, mark script
}

// New returns a Store that keeps its claims on the client's server. It makes no request. Whether its arguments can work
// is what Validate tells; idempotency.New calls that.
func New(client Client, optFns ...func(*Options)) *Store {
	options, err := resolve(optFns)
	if isNil(client) {
		err = errors.New("redisstore: client is nil, want one of goredisclient.New or rueidisclient.New")
	}
	s := &Store{
		client: client, options: options, err: err,
		claim:    newScript(hashPart, freePart, claimPart),
		complete: newScript(hashPart, heldPart, completePart),
		release:  newScript(hashPart, heldPart, releasePart),
		renew:    newScript(hashPart, heldPart, renewPart),
		find:     newScript(hashPart, freePart, findPart),
		mark:     newScript(hashPart, freePart, markPart),
	}
	s.pipeliner, _ = client.(Pipeliner)
	return s
}

// Validate returns an error that names the first argument of New that cannot work, its value and its limit. It makes no
// request. The methods of such a Store return that error.
func (s *Store) Validate() error { return s.err }

// isNil reports whether client is nil or a nil pointer in an interface, which would panic in the first call only.
func isNil(client any) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
