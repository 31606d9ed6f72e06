package dynamodbstreamtest

import (
	"fmt"
	"math/big"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// sequences gives out sequence numbers as DynamoDB streams do: larger for later records, and not all of one length. They
// grow from 3 digits to 25 within some ninety records, so that comparing them as text goes wrong soon.
type sequences struct {
	seed  lambdatest.Seed
	count int
	last  *big.Int
}

func newSequences(seed lambdatest.Seed) sequences {
	return sequences{seed: seed, last: big.NewInt(100)}
}

// mostDigits is how long sequence numbers become.
const mostDigits = 25

func (q *sequences) next() string {
	q.count++
	d := q.seed.Digest("step", fmt.Sprint(q.count))
	if digits := len(q.last.String()); q.count%4 == 0 && digits < mostDigits {
		q.last.Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	}
	q.last.Add(q.last, big.NewInt(1+int64(d[0]))) // up to 256
	return q.last.String()
}

// eventID returns the ID of the newest record: 32 hexadecimal digits.
func (q *sequences) eventID() string {
	d := q.seed.Digest("event", fmt.Sprint(q.count))
	return fmt.Sprintf("%x", d[:16])
}
