package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
)

// guardTick is a tick for guards. It is so long that what passes within one, such as the pauses between two tries of a
// completion, changes nothing.
const guardTick = 100 * time.Second

var errNoAnswer = errors.New("the network is gone")

// TestGuardConforms lets guards make walks of the model. Each attempt is a goroutine that claims, and completes or
// releases when it is told to; the store that it calls answers what the model's network lets through. After each step
// the attempt must be where the model's is.
func TestGuardConforms(t *testing.T) {
	var walks []Config
	for _, c := range Scenarios(true) {
		switch c.Name {
		case "quiet", "faults":
			c.Faults, c.Horizon, c.Attempts = 4*min(c.Faults, 1), 12, maxAttempts
			walks = append(walks, c)
		}
	}
	for _, c := range walks {
		t.Run(c.Name, func(t *testing.T) {
			ends := map[string]int{}
			rapid.Check(t, func(rt *rapid.T) {
				// The steps are drawn outside of the bubble, in which rapid's own goroutines and clocks have no place.
				for range 12 {
					var way []guardStep
					walk(rt, &c, func(before *State, step Step, after *State) {
						way = append(way, guardStep{*before, step, *after})
					})
					var err error
					synctest.Test(t, func(t *testing.T) { err = replay(&c, way, ends) })
					if err != nil {
						rt.Fatal(err)
					}
				}
			})
			if ends["done"] == 0 || ends["replayed"] == 0 || ends["held"] == 0 || ends["late"] == 0 ||
				c.Faults > 0 && (ends["lost"] == 0 || ends["unrecorded"] == 0 || ends["undecided"] == 0) {
				t.Errorf("attempts end as %v: the walks do not come to what matters", ends)
			}
		})
	}
}

type guardStep struct {
	before State
	step   Step
	after  State
}

// worker is one attempt. Its goroutine is always in one of its channels, or has ended.
type worker struct {
	calls   chan any   // requests, as the guard makes them
	replies chan reply // and the answers that it gets
	orders  chan op    // opComplete or opRelease: the handler has returned
	end     chan string

	request any   // of the call that is under way
	answer  reply // what the store has answered
	silent  bool  // no more tries of this call are answered
}

type reply struct {
	result idempotency.ClaimResult
	err    error
}

// world is the real side of a walk.
type world struct {
	*Config
	store   *idempotency.MemoryStore
	start   time.Time
	clock   func(p int8) time.Time
	workers [maxAttempts]*worker
	late    map[lateKey]any
	ends    map[string]int
	stop    chan struct{}
}

// lateKey names a request. All copies of one are the same.
type lateKey struct {
	attempt int8
	op      op
}

func replay(c *Config, way []guardStep, ends map[string]int) error {
	now, start := int8(0), time.Now()
	w := &world{
		Config: c, store: idempotency.NewMemoryStore(), start: start, late: map[lateKey]any{}, ends: ends,
		stop:  make(chan struct{}),
		clock: func(p int8) time.Time { return start.Add(time.Duration(now+c.Offsets[p]) * guardTick) },
	}
	defer func() {
		close(w.stop)
		time.Sleep(time.Minute) // time stands still for what goes on after the bubble's own goroutine
	}()
	for i, g := range way {
		now = g.before.Now
		if g.step.Kind == ticks {
			now++
			time.Sleep(time.Until(start.Add(time.Duration(now) * guardTick)))
			continue
		}
		if err := w.do(&g); err != nil {
			return fmt.Errorf("step %d: %s: %w", i+1, c.describe(&g.before, g.step, &g.after), err)
		}
	}
	return nil
}

// do makes one step.
func (w *world) do(g *guardStep) error {
	step, i := g.step, g.step.Attempt
	switch step.Kind {
	case delivers:
		for i := range g.after.Attempts {
			if g.after.Attempts[i].Phase != unused && g.before.Attempts[i].Phase == unused {
				return w.begin(i, step.Process, &g.after)
			}
		}
	case arrives, losesReply:
		if err := w.arrive(w.workers[i].request, step.Answer, &w.workers[i].answer); err != nil {
			return err
		}
	case arrivesLate:
		return w.arrive(w.late[lateKey{i, step.Request.Op}], step.Answer, new(reply))
	case isThrottled:
		w.workers[i].answer = reply{err: errors.New("throttled")}
	case isDelayed:
		w.late[lateKey{i, step.Request.Op}] = w.workers[i].request
	case processCrashes:
		for i := range g.before.Attempts {
			if a := &g.before.Attempts[i]; a.live() && a.Process == step.Process && a.Call == sent {
				w.late[lateKey{int8(i), a.Op}] = w.workers[i].request
			}
		}
	case reads:
		if step.Answer == answerError && g.after.Attempts[i].Call == unanswered {
			return nil // the store's client tries again, or gives up
		}
		w.workers[i].replies <- w.workers[i].answer
		return w.compare(int(i), &g.after)
	case givesUp:
		w.workers[i].silent = step.Request.Op != opClaim // which the guard does not try again
		w.workers[i].replies <- reply{err: errNoAnswer}
		return w.compare(int(i), &g.after)
	case completes:
		w.workers[i].orders <- opComplete
		return w.compare(int(i), &g.after)
	case returnsError:
		w.workers[i].orders <- opRelease
		return w.compare(int(i), &g.after)
	}
	return nil
}

// begin starts an attempt.
func (w *world) begin(i int, p int8, after *State) error {
	guard, err := idempotency.New("model", &gate{w, i}, func(o *idempotency.Options) {
		o.Lease = time.Duration(w.Lease) * guardTick
		o.Skew = time.Duration(w.Skew) * guardTick
		o.Expiry = time.Duration(w.KeyLife) * guardTick
		o.Clock = func() time.Time { return w.clock(p) }
	})
	if err != nil {
		return err
	}
	k := &worker{calls: make(chan any), replies: make(chan reply), orders: make(chan op), end: make(chan string, 1)}
	w.workers[i] = k
	go func() { k.end <- w.work(guard, k) }()
	return w.compare(i, after)
}

// work is an attempt, and returns how it ended.
func (w *world) work(guard *idempotency.Guard, k *worker) string {
	ctx := context.Background()
	claim, err := guard.Claim(ctx, idempotency.Request{Key: "key"})
	switch {
	case errors.Is(err, idempotency.ErrInProgress):
		return "held"
	case errors.Is(err, idempotency.ErrLeaseTooShort):
		return "late"
	case err != nil:
		return "undecided"
	case claim.Replayed():
		return "replayed"
	}
	var order op
	select {
	case order = <-k.orders:
	case <-w.stop:
		return "stopped"
	}
	ctx, cancel := idempotency.Detach(ctx)
	defer cancel()
	if order == opRelease {
		_ = claim.Release(ctx) // the record is told as failed, whatever becomes of the release
		return "released"
	}
	switch err := claim.Complete(ctx, nil); {
	case err == nil:
		return "done"
	case errors.Is(err, idempotency.ErrClaimLost):
		return "lost"
	default:
		return "unrecorded"
	}
}

// compare reports an attempt that is not where the model's is.
func (w *world) compare(i int, after *State) error {
	k, a := w.workers[i], &after.Attempts[i]
	if k.silent {
		time.Sleep(time.Second) // the guard tries a completion or release three times
	}
	synctest.Wait()
	k.silent = false
	got := "runs"
	select {
	case r := <-k.calls:
		k.request = r
		got = fmt.Sprintf("%T", r)
		if err := w.compareRequest(r, w.request(after, i)); err != nil {
			return err
		}
	case got = <-k.end:
		w.ends[got]++
	default:
	}
	if want := expected(a); !slices.Contains(want, got) {
		return fmt.Errorf("the guard's attempt is at %q, want %q", got, want)
	}
	return nil
}

// expected returns where a guard's attempt may be, of which the model's is a.
func expected(a *attempt) []string {
	switch {
	case a.Phase == claiming:
		return []string{"idempotency.ClaimRequest"}
	case a.Phase == running:
		return []string{"runs"}
	case a.Phase == settling:
		return []string{"idempotency.CompleteRequest"}
	case a.Phase == releasing:
		return []string{"idempotency.ReleaseRequest"}
	case a.Outcome == succeeded:
		return []string{"done"}
	case a.Outcome == unrecorded:
		return []string{"unrecorded"}
	case a.Outcome == replayed:
		return []string{"replayed"}
	default:
		return []string{"held", "late", "undecided", "released", "lost"}
	}
}

// compareRequest reports times of a request that are not the model's. The guard rounds expiries up to seconds, of which a
// tick has many.
func (w *world) compareRequest(r any, q request) error {
	type times struct{ Now, Lease, Expiry int8 }
	tick := func(t time.Time) int8 { return int8(t.Sub(w.start) / guardTick) }
	want, got := times{q.Now, q.Lease, q.Expiry}, times{}
	switch r := r.(type) {
	case idempotency.ClaimRequest:
		got = times{tick(r.Now), tick(r.Lease), tick(r.Expiry)}
	case idempotency.CompleteRequest:
		got = times{tick(r.Now), 0, tick(r.Expiry)}
	case idempotency.ReleaseRequest:
		got = times{Now: tick(r.Now)}
	}
	if got != want {
		return fmt.Errorf("times of the guard's %T are %+v, want %+v", r, got, want)
	}
	return nil
}

// arrive makes the store do what a request asks, and compares its answer with the model's.
func (w *world) arrive(r any, want answer, got *reply) error {
	ctx := context.Background()
	*got = reply{}
	switch r := r.(type) {
	case idempotency.ClaimRequest:
		got.result, got.err = w.store.Claim(ctx, r)
	case idempotency.CompleteRequest:
		got.err = w.store.Complete(ctx, r)
	case idempotency.ReleaseRequest:
		got.err = w.store.Release(ctx, r)
	default:
		return fmt.Errorf("request is a %T", r)
	}
	is := answerOK
	switch {
	case errors.Is(got.err, idempotency.ErrClaimLost):
		is = answerLost
	case errors.Is(got.err, idempotency.ErrAlreadyCompleted):
		is = answerAlready
	case got.err != nil:
		return got.err
	case got.result.Entry.Status == idempotency.Completed:
		is = answerDone
	case got.result.Entry.Status == idempotency.InProgress && !got.result.Claimed:
		is = answerHeld
	}
	if is != want {
		return fmt.Errorf("the store's answer is %d, want %d", is, want)
	}
	return nil
}

// gate is the store of one attempt. It hands each request over, and waits for the answer.
type gate struct {
	*world
	attempt int
}

func (g *gate) pass(r any) reply {
	k := g.workers[g.attempt]
	if k.silent {
		return reply{err: errNoAnswer}
	}
	select {
	case k.calls <- r:
	case <-g.stop:
		return reply{err: errNoAnswer}
	}
	select {
	case answer := <-k.replies:
		return answer
	case <-g.stop:
		return reply{err: errNoAnswer}
	}
}

func (g *gate) Claim(_ context.Context, r idempotency.ClaimRequest) (idempotency.ClaimResult, error) {
	answer := g.pass(r)
	return answer.result, answer.err
}

func (g *gate) Complete(_ context.Context, r idempotency.CompleteRequest) error { return g.pass(r).err }
func (g *gate) Release(_ context.Context, r idempotency.ReleaseRequest) error   { return g.pass(r).err }
func (g *gate) Renew(_ context.Context, r idempotency.RenewRequest) error {
	return fmt.Errorf("the guard renews: %+v", r)
}
