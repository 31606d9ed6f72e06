package protocol

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
)

// walk draws one step after another until none is possible, or for a while. Every other step is one without a fault, so
// that faults are still left when they matter.
func walk(t *rapid.T, c *Config, visit func(before *State, step Step, after *State)) {
	type successor struct {
		step  Step
		after State
	}
	s := c.Initial()
	for range 60 {
		var possible []successor
		c.Next(&s, func(step Step, after *State) { possible = append(possible, successor{step, *after}) })
		if len(possible) == 0 {
			return
		}
		if rapid.Bool().Draw(t, "calm") {
			calm := slices.DeleteFunc(slices.Clone(possible), func(next successor) bool {
				k := next.step.Kind
				return !(k.isProgress() && k != givesUp) && k != ticks && k != arrivesLate && k != thaws
			})
			if len(calm) > 0 {
				possible = calm
			}
		}
		next := possible[rapid.IntRange(0, len(possible)-1).Draw(t, "step")]
		visit(&s, next.step, &next.after)
		s = next.after
	}
}

// storeWalks are the scenarios in which only requests change the store. They are as large as can be: nothing is
// exhausted here.
func storeWalks() []Config {
	var configs []Config
	for _, c := range Scenarios(true) {
		if c.Peer || c.Transaction {
			continue
		}
		c.Deletion, c.Kinds, c.Faults, c.Horizon = false, c.Kinds&^handDeletions, 4, 12
		configs = append(configs, c)
	}
	return configs
}

// TestMemoryStoreConforms sends what arrives at the model's store to a MemoryStore as well, and compares the answers and
// what is stored. One tick is one second.
func TestMemoryStoreConforms(t *testing.T) {
	for _, c := range storeWalks() {
		t.Run(c.Name, func(t *testing.T) {
			arrived := map[op]map[answer]int{}
			rapid.Check(t, func(t *rapid.T) {
				store := idempotency.NewMemoryStore()
				walk(t, &c, func(_ *State, step Step, after *State) {
					switch step.Kind {
					case arrives, losesReply, arrivesLate:
						q := step.Request
						if arrived[q.Op] == nil {
							arrived[q.Op] = map[answer]int{}
						}
						arrived[q.Op][step.Answer]++
						key := "key " + strconv.Itoa(int(step.Record))
						if got := sendTo(t, store, c.realRequest(key, q)); got != step.Answer {
							t.Fatalf("answer to %+v is %d, want %d", q, got, step.Answer)
						}
						if diff := cmp.Diff(after.Records[step.Record].Row, storedRow(store, key)); diff != "" {
							t.Fatalf("row after %+v (-want +got):\n%s", q, diff)
						}
					}
				})
			})
			if arrived[opClaim][answerOK] == 0 || arrived[opClaim][answerHeld] == 0 || arrived[opComplete][answerOK] == 0 {
				t.Errorf("answers are %v: the walks do not come to what matters", arrived)
			}
		})
	}
}

func instant(tick int8) time.Time {
	return time.Unix(1_000_000_000, 0).Add(time.Duration(tick) * time.Second)
}

func realToken(token int8) string { return "owner " + strconv.Itoa(int(token)) }

// realRequest returns a request as the library's stores know it.
func (c *Config) realRequest(key string, q request) any {
	owner, now := realToken(q.Owner), instant(q.Now)
	switch q.Op {
	case opClaim:
		return idempotency.ClaimRequest{
			Key: key, Owner: owner, Now: now, Lease: instant(q.Lease), Expiry: instant(q.Expiry),
			Skew: time.Duration(c.Skew) * time.Second,
		}
	case opComplete:
		return idempotency.CompleteRequest{Key: key, Owner: owner, Now: now, Expiry: instant(q.Expiry)}
	case opRelease:
		return idempotency.ReleaseRequest{Key: key, Owner: owner, Now: now}
	default:
		return idempotency.RenewRequest{
			Key: key, Owner: owner, NewOwner: realToken(q.NewOwner), Now: now, Lease: instant(q.Lease), Expiry: instant(q.Expiry),
		}
	}
}

// sendTo sends a request, and returns what the model calls the answer.
func sendTo(t rapid.TB, store idempotency.Store, r any) answer {
	ctx := context.Background()
	var err error
	switch r := r.(type) {
	case idempotency.ClaimRequest:
		result, err := store.Claim(ctx, r)
		switch {
		case err != nil:
			t.Fatalf("claim %+v: %v", r, err)
		case result.Claimed:
			return answerOK
		case result.Entry.Status == idempotency.Completed:
			return answerDone
		}
		return answerHeld
	case idempotency.CompleteRequest:
		err = store.Complete(ctx, r)
	case idempotency.ReleaseRequest:
		err = store.Release(ctx, r)
	case idempotency.RenewRequest:
		err = store.Renew(ctx, r)
	default:
		t.Fatalf("request is a %T", r)
	}
	switch {
	case err == nil:
		return answerOK
	case errors.Is(err, idempotency.ErrClaimLost):
		return answerLost
	case errors.Is(err, idempotency.ErrAlreadyCompleted):
		return answerAlready
	}
	t.Fatalf("request %+v: %v", r, err)
	return noAnswer
}

// storedRow returns what the store holds, as the model has it.
func storedRow(store *idempotency.MemoryStore, key string) Row {
	e, held := store.Get(key)
	if !held {
		return Row{}
	}
	tick := func(t time.Time) int8 { return int8(t.Sub(instant(0)) / time.Second) }
	token, _ := strconv.Atoi(e.Owner[len("owner "):])
	row := Row{Status: inprogress, Owner: int8(token), Expiry: tick(e.Expiry)}
	if e.Status == idempotency.Completed {
		row.Status = completed
	} else {
		row.Lease = tick(e.Lease)
	}
	return row
}
