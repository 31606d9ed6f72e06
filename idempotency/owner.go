package idempotency

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
)

// functionVariable is set by Lambda to the function's name
// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html).
const functionVariable = "AWS_LAMBDA_FUNCTION_NAME"

// newOwner returns a token that nobody can guess, fresh for every claim: a token shared by two claims would let one
// complete the other. In Lambda it ends with a dot and the function's name, so that a completion tells whose it is.
func (g *Guard) newOwner() string {
	if g.function == "" {
		return rand.Text()
	}
	return rand.Text() + "." + g.function
}

// foreign warns, once in the life of a guard, of a replay of what another function has done. It may be meant, as after a
// function was renamed. But where two functions with one namespace read one stream, each does only what it happens to
// claim first, and nothing else tells.
func (g *Guard) foreign(ctx context.Context, c *Claim, owner string) {
	_, function, ok := strings.Cut(owner, ".")
	if !ok || g.function == "" || function == g.function {
		return
	}
	g.foreignWarning.Do(func() {
		c.log(ctx, slog.LevelWarn,
			"idempotent work is replayed that another function has done: if both are to do it, each needs a namespace of its own",
			slog.Group("function", slog.String("this", g.function), slog.String("other", function)))
	})
}
