package payments

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/oncekit/oncekit/idempotency"
)

// KeyHeader is the header by which a client names a request, so that it may send it again.
// See https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/.
const KeyHeader = "Idempotency-Key"

// Payment is what a client asks for, as it stands in the body of a request.
type Payment struct {
	ID       string `json:"id,omitempty"` // the client's; needed where there is no Idempotency-Key
	Amount   int64  `json:"amount"`       // in the smallest unit of the currency
	Currency string `json:"currency"`     // three capital letters
	Card     string `json:"card"`         // the bank's token for it
}

// order is a payment, who asks for it, and by which key.
type order struct {
	caller  string
	key     string // from the header
	payment Payment
}

// readOrder reads a request. The error is for the client.
func readOrder(r Request) (order, error) {
	o := order{caller: caller(r)}
	for name, value := range r.Headers {
		if strings.EqualFold(name, KeyHeader) {
			o.key = strings.TrimSpace(value)
		}
	}
	body := []byte(r.Body)
	if r.IsBase64Encoded { // as API Gateway does with bodies that their Content-Type does not declare to be text
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			return o, fmt.Errorf("the body is not valid Base64: %w", err)
		}
	}
	// A member that is not known is refused: who writes "ammount" is not to be charged something else.
	// So are one that comes twice or in other letters, and anything behind the payment: who reads it differently, such as
	// a proxy that checks amounts, would see another payment.
	if err := jsonv2.Unmarshal(body, &o.payment, jsonv2.RejectUnknownMembers(true)); err != nil {
		return o, fmt.Errorf("the body is not a payment in JSON: %w", err)
	}
	return o, o.payment.check()
}

func (p Payment) check() error {
	switch {
	case p.Amount <= 0:
		return fmt.Errorf("amount is %d, want more than 0", p.Amount)
	case len(p.Currency) != 3 || strings.Trim(p.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return fmt.Errorf("currency is %q, want three capital letters such as EUR", p.Currency)
	case p.Card == "":
		return errors.New("card is missing")
	}
	return nil
}

// caller returns who sends a request, or "" if nobody knows: the IAM user, or the role, whichever session of it this is.
// See https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#principaltable: the ID of an
// assumed role has the session's name behind a colon.
func caller(r Request) string {
	if r.RequestContext.Authorizer == nil || r.RequestContext.Authorizer.IAM == nil {
		return ""
	}
	id, _, _ := strings.Cut(r.RequestContext.Authorizer.IAM.UserID, ":")
	return id
}

// idempotencyKey returns the business key: who asks, and for what, by the client's own name for it. The caller is part of it,
// so that nobody gets another's response. The words "header" and "payment" keep the two kinds of names apart. A client that
// sends a request again sends it with the same header, or both times without one.
func (o order) idempotencyKey() (string, error) {
	if o.key != "" {
		return idempotency.JoinKey(o.caller, "header", o.key), nil
	}
	return idempotency.JoinKey(o.caller, "payment", o.payment.ID), nil // "" without an ID: a missing key
}

// fingerprint returns a hash of all that makes it the same payment. It is of what was decoded, so another order of the
// members or other white space makes no difference.
func (o order) fingerprint() (string, error) {
	text, err := json.Marshal(o.payment)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
