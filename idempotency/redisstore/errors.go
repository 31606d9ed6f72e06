package redisstore

import (
	"fmt"
	"strings"

	"github.com/oncekit/oncekit/idempotency"
)

// The first words of error replies. They are those of the sources of Redis and Valkey, server.c and acl.c.
const (
	noScript      = "NOSCRIPT"  // the server does not know the script: it was restarted, or another took over
	outOfMemory   = "OOM"       // maxmemory is reached, and nothing may be evicted
	readOnly      = "READONLY"  // the server is a replica
	noAuth        = "NOAUTH"    // no password was sent
	wrongPassword = "WRONGPASS" // or user
	noPermission  = "NOPERM"    // for the command, or for the key
)

// hasCode reports whether err has an error reply with this code. It need not be the first word: servers before version 7
// put what a script met behind "ERR Error running script", and clients put text of their own before it.
func hasCode(err error, code string) bool {
	if err == nil {
		return false
	}
	for _, word := range strings.Fields(err.Error()) {
		if strings.Trim(word, "-:") == code {
			return true
		}
	}
	return false
}

// isDenied reports whether no request can succeed before someone changes the configuration. Two of the refusals have no
// code: a long command before the password (networking.c), and a script's command in version 7.0 (script.c).
func isDenied(err error) bool {
	return hasCode(err, noAuth) || hasCode(err, wrongPassword) || hasCode(err, noPermission) ||
		strings.Contains(err.Error(), "unauthenticated multibulk length") ||
		strings.Contains(err.Error(), "The user executing the script can't")
}

// where names a key as the server has it.
func (s *Store) where(key string) string { return fmt.Sprintf("key %q", s.options.KeyPrefix+key) }

// failure returns the error of a call that failed.
func (s *Store) failure(key string, err error) error {
	switch {
	case hasCode(err, outOfMemory):
		return fmt.Errorf("%w: redisstore: %s: %w", idempotency.ErrStoreFull, s.where(key), err)
	case isDenied(err):
		return fmt.Errorf("%w: redisstore: %s: %w", idempotency.ErrStoreUnusable, s.where(key), err)
	case hasCode(err, readOnly):
		// Not unusable: after a failover the client finds the primary again. The call may be one of several tries whose
		// first was applied, and then the claim has to be given back.
		return fmt.Errorf("redisstore: %s: the server is a replica, want the primary: %w", s.where(key), err)
	}
	return fmt.Errorf("redisstore: %s: %w", s.where(key), err)
}

func (s *Store) wrongType(key, found string) error {
	return fmt.Errorf("redisstore: %s holds a %s, want a hash that this package wrote: "+
		"give the store an Options.KeyPrefix of its own", s.where(key), found)
}

func (s *Store) unexpected(key string, reply []string) error {
	return fmt.Errorf("redisstore: %s: the script's reply is %q, want one of this package's scripts", s.where(key), reply)
}

func (s *Store) lost(key string, e idempotency.Entry, owner string) error {
	found := "it is gone"
	switch {
	case e.Status == idempotency.Absent:
	case e.Owner == owner:
		found = "it has expired"
	case e.Owner == "":
		found = "it is " + e.Status.String() + " without an owner"
	default:
		found = "it is " + e.Status.String() + " under another owner"
	}
	return fmt.Errorf("%w: redisstore: %s: %s", idempotency.ErrClaimLost, s.where(key), found)
}

func (s *Store) alreadyCompleted(key string) error {
	return fmt.Errorf("%w: redisstore: %s", idempotency.ErrAlreadyCompleted, s.where(key))
}
