package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed" // the scripts
	"encoding/hex"
)

var (
	//go:embed hash.lua
	hashPart string
	//go:embed held.lua
	heldPart string
	//go:embed free.lua
	freePart string
	//go:embed claim.lua
	claimPart string
	//go:embed complete.lua
	completePart string
	//go:embed release.lua
	releasePart string
	//go:embed renew.lua
	renewPart string
	//go:embed find.lua
	findPart string
	//go:embed mark.lua
	markPart string
)

// script is a transition as the server runs it.
type script struct{ text, digest string }

func newScript(parts ...string) script {
	var text string
	for _, part := range parts {
		text += part
	}
	digest := sha1.Sum([]byte(text))
	return script{text: text, digest: hex.EncodeToString(digest[:])}
}

// call is one run of a script.
type call struct {
	key  string // without the prefix
	args []string
}

func (s *Store) command(script *script, c call) Command {
	return Command{Name: "EVALSHA", Script: script.digest, Key: s.options.KeyPrefix + c.key, Args: c.args}
}

// asText is a command that does not need the server to know the script. The server knows it from then on.
func asText(script *script, c Command) Command {
	c.Name, c.Script = "EVAL", script.text
	return c
}

// do runs a script.
func (s *Store) do(ctx context.Context, script *script, c call) Reply {
	if s.err != nil {
		return Reply{Err: s.err}
	}
	if err := ctx.Err(); err != nil {
		return Reply{Err: s.failure(c.key, err)}
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	command := s.command(script, c)
	values, err := s.client.Do(ctx, command)
	if hasCode(err, noScript) {
		values, err = s.client.Do(ctx, asText(script, command))
	}
	return s.checked(c.key, Reply{Values: values, Err: err})
}

// checked returns the reply with the error that it stands for.
func (s *Store) checked(key string, r Reply) Reply {
	switch {
	case r.Err != nil:
		return Reply{Err: s.failure(key, r.Err)}
	case len(r.Values) == 2 && r.Values[0] == "type":
		return Reply{Err: s.wrongType(key, r.Values[1])}
	case len(r.Values) == 0 || r.Values[0] != "done" && r.Values[0] != "held":
		return Reply{Err: s.unexpected(key, r.Values)}
	}
	return r
}
