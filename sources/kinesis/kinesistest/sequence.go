package kinesistest

import (
	"fmt"
	"math/big"

	"github.com/oncekit/oncekit/sources/lambdatest"
)

// sequences gives out sequence numbers that look like those of Kinesis: 56 digits, larger for later records, with gaps.
type sequences struct {
	seed   lambdatest.Seed
	base   *big.Int
	same   bool
	counts map[string]int // by shard ID, or all under ""
}

func newSequences(seed lambdatest.Seed, same bool) sequences {
	d := seed.Digest("sequence numbers")
	base := new(big.Int).SetBytes(d[:])
	// 51 digits, so that no number of steps leads to a 53rd.
	base.Mod(base, new(big.Int).Exp(big.NewInt(10), big.NewInt(51), nil))
	return sequences{seed: seed, base: base, same: same, counts: make(map[string]int)}
}

// next returns the sequence number of the shard's next record.
func (q *sequences) next(shardID string) string {
	if !q.same {
		shardID = ""
	}
	q.counts[shardID]++
	n := q.counts[shardID]
	d := q.seed.Digest("step", fmt.Sprint(n))
	step := new(big.Int).Lsh(big.NewInt(int64(n)), 64) // about 1.8e19 from one to the next
	step.Add(step, new(big.Int).SetBytes(d[:8]))       // and less than that by chance
	return fmt.Sprintf("4959%052s", step.Add(step, q.base))
}
