package powertoolstest_test

import (
	"testing"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/internal/powertoolstest"
)

const (
	otherAmount = `{"order":"o-1","amount":6}`
	mismatch    = "IdempotencyValidationError"
)

// validated returns the function in TypeScript whose payload is validated by its amount.
func (s *shared) validated() powertoolstest.Function {
	return s.typeScript(func(f *powertoolstest.Function) { f.Config.PayloadValidation = "amount" })
}

// doValidated is do with the fingerprint of the amount.
func doValidated(t *testing.T, guard *idempotency.Guard, payload, result string) powertoolstest.Outcome {
	t.Helper()
	key, fingerprint := work(t, payload)
	return doAs(t, guard, key, fingerprint, result)
}

func TestValidationOfTypeScript(t *testing.T) {
	s := newShared(t)
	guard := s.guard(t)
	running := s.Begin(t, s.validated(), payload)
	refused(t, doValidated(t, guard, otherAmount, `1`), idempotency.ErrFingerprintMismatch)
	refused(t, doValidated(t, guard, payload, `1`), idempotency.ErrInProgress)
	running.Return(t, receipt)
	ran(t, "TypeScript", running.Outcome(t), receipt)
	refused(t, doValidated(t, guard, otherAmount, `1`), idempotency.ErrFingerprintMismatch)
	replayed(t, "Go", doValidated(t, guard, payload, `1`), receipt)
	// Without a fingerprint Go takes any payload for the same.
	replayed(t, "Go", do(t, guard, otherAmount, `1`), receipt)
}

func TestValidationOfGo(t *testing.T) {
	s := newShared(t, nativeData)
	guard := s.guard(t)
	key, fingerprint := work(t, payload)
	c, err := guard.Claim(t.Context(), idempotency.Request{Key: key, Fingerprint: fingerprint})
	if err != nil {
		t.Fatal(err)
	}
	threw(t, s.Call(t, s.validated(), otherAmount, `1`), mismatch)
	threw(t, s.Call(t, s.validated(), payload, `1`), inProgress)
	if err := c.Complete(t.Context(), []byte(receipt)); err != nil {
		t.Fatal(err)
	}
	threw(t, s.Call(t, s.validated(), otherAmount, `1`), mismatch)
	replayed(t, "TypeScript", s.Call(t, s.validated(), payload, `1`), receipt)
	replayed(t, "TypeScript", s.Call(t, s.typeScript(), otherAmount, `1`), receipt)
}

// TestValidationOfOneSide: TypeScript that validates refuses what Go stored without a fingerprint, whatever the payload. Go
// that validates replays what TypeScript stored without one.
func TestValidationOfOneSide(t *testing.T) {
	s := newShared(t)
	guard := s.guard(t)
	ran(t, "Go", do(t, guard, payload, receipt), receipt)
	threw(t, s.Call(t, s.validated(), payload, `1`), mismatch)

	const another = `{"order":"o-2","amount":5}`
	ran(t, "TypeScript", s.Call(t, s.typeScript(), another, receipt), receipt)
	replayed(t, "Go", doValidated(t, guard, another, `1`), receipt)
}
