package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/sources/sqs"
)

// Payload types that name their keys.
type (
	valueKeyed   struct{ K string }
	pointerKeyed struct{ K string }
)

func (v valueKeyed) IdempotencyKey() string    { return v.K }
func (p *pointerKeyed) IdempotencyKey() string { return p.K }

// testKey sends one message to a handler for T, and checks under which key it ran.
func testKey[T any](t *testing.T, name, body, want string, optFns ...func(*sqs.Options)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		store := idempotency.NewMemoryStore()
		got := "no run"
		h := newHandler(t, func(ctx context.Context, m *sqs.Message[T]) error {
			info, _ := idempotency.FromContext(ctx)
			got = info.Key
			return nil
		}, append(optFns, func(o *sqs.Options) { o.Idempotency = newGuard(t, store) })...)
		wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: body}))
		if got != want {
			t.Errorf("key is %q, want %q", got, want)
		}
		if entry, ok := store.Get("orders#" + want); !ok || entry.Status != idempotency.Completed {
			t.Errorf("entry of %q is %v, want it completed", want, entry.Status)
		}
	})
}

func TestKeySources(t *testing.T) {
	const body = `{"k":"business","id":"o1"}`
	testKey[string](t, "messageId by default", body, "m1")
	testKey[order](t, "messageId of a payload without a key", body, "m1")
	testKey[valueKeyed](t, "method on a value", body, "business")
	testKey[*valueKeyed](t, "method on a value, by a pointer", body, "business")
	testKey[pointerKeyed](t, "method on a pointer", body, "business")
	testKey[*pointerKeyed](t, "method on a pointer, by a pointer", body, "business")
	testKey[order](t, "KeyOf", body, "o1", sqs.KeyOf(func(o order) string { return o.ID }))
	testKey[*order](t, "KeyOf of a pointer", body, "o1", sqs.KeyOf(func(o *order) string { return o.ID }))
	testKey[valueKeyed](t, "KeyOf before the method", body, "of business", sqs.KeyOf(func(v valueKeyed) string { return "of " + v.K }))
	testKey[valueKeyed](t, "Options.Key before the method", body, "m1/1", func(o *sqs.Options) {
		o.Key = func(v sqs.View) (string, error) { return v.ID() + "/" + v.Attribute("ApproximateReceiveCount"), nil }
	})
}

func TestKeyOptionErrors(t *testing.T) {
	guard := guarded(t)
	key := func(o *sqs.Options) { o.Key = func(sqs.View) (string, error) { return "k", nil } }
	fingerprint := func(o *sqs.Options) { o.Fingerprint = sqs.BodySHA256 }
	orderKey := sqs.KeyOf(func(o order) string { return o.ID })
	for _, test := range []struct {
		name    string
		options []func(*sqs.Options)
		want    []string
	}{
		{"KeyOf of another type", []func(*sqs.Options){guard, sqs.KeyOf(func(s string) string { return s })},
			[]string{"KeyOf has a func(string) string, want a func(sqs_test.order) string"}},
		{"KeyOf of a pointer to it", []func(*sqs.Options){guard, sqs.KeyOf(func(o *order) string { return o.ID })},
			[]string{"KeyOf has a func(*sqs_test.order) string, want a func(sqs_test.order) string"}},
		{"KeyOf of nil", []func(*sqs.Options){guard, sqs.KeyOf[order](nil)},
			[]string{"KeyOf has a nil function, want a func(sqs_test.order) string"}},
		{"both", []func(*sqs.Options){guard, key, orderKey}, []string{"both KeyOf and Options.Key are set, want one"}},
		{"Key without a guard", []func(*sqs.Options){key}, []string{"Options.Key is set, but Options.Idempotency is nil"}},
		{"KeyOf without a guard", []func(*sqs.Options){orderKey}, []string{"KeyOf is set, but Options.Idempotency is nil"}},
		{"all without a guard", []func(*sqs.Options){key, fingerprint},
			[]string{"Options.Key is set", "Options.Fingerprint is set, but Options.Idempotency is nil"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := sqs.NewHandler(func(context.Context, *sqs.Message[order]) error { return nil }, test.options...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error is %q, want %q in it", err, part)
				}
			}
		})
	}
}

// A method IdempotencyKey does nothing without a guard: it is no option that someone set.
func TestKeyMethodWithoutGuard(t *testing.T) {
	ran := 0
	h := newHandler(t, func(context.Context, *sqs.Message[valueKeyed]) error { ran++; return nil }, concurrency(1))
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: `{}`}, message{ID: "m2", Body: `{}`}))
	if ran != 2 {
		t.Errorf("%d messages ran, want 2", ran)
	}
}

// Case 15: a message without a key fails, and no two of them share one.
func TestKeyMissing(t *testing.T) {
	payload := event(message{ID: "m1", Body: `{"amount":1}`}, message{ID: "m2", Body: `{"amount":2}`},
		message{ID: "m3", Body: `{"id":"","amount":3}`}, message{ID: "m4", Body: `{"id":null,"amount":4}`},
		message{ID: "m5", Body: `{"id":"o5"}`})
	byID := sqs.KeyOf(func(o order) string { return o.ID })
	for _, n := range []int{1, 10} {
		for _, isUnprotected := range []bool{false, true} {
			t.Run(fmt.Sprintf("concurrency %d, unprotected %v", n, isUnprotected), func(t *testing.T) {
				store := idempotency.NewMemoryStore()
				guard := newGuard(t, store, func(o *idempotency.Options) {
					if isUnprotected {
						o.MissingKey = idempotency.MissingKeyRunsUnprotected
					}
				})
				var logged logs
				ran := make(chan string, 10)
				h := newHandler(t, func(ctx context.Context, m *sqs.Message[order]) error {
					if _, ok := idempotency.FromContext(ctx); ok != (m.Body.ID != "") {
						t.Errorf("%s: context tells of a claim: %v", m.ID(), ok)
					}
					ran <- m.ID()
					return nil
				}, concurrency(n), byID, logged.option, func(o *sqs.Options) { o.Idempotency = guard })
				var failed []string
				want := []string{"m1", "m2", "m3", "m4", "m5", "m1", "m2", "m3", "m4"}
				if !isUnprotected {
					failed, want = []string{"m1", "m2", "m3", "m4"}, []string{"m5"}
				}
				wantFailures(t, t.Context(), h, payload, failed...)
				wantFailures(t, t.Context(), h, payload, failed...) // a redelivery
				close(ran)
				counts, wanted := map[string]int{}, map[string]int{}
				for id := range ran {
					counts[id]++
				}
				for _, id := range want {
					wanted[id]++
				}
				if diff := cmp.Diff(wanted, counts); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				if store.Len() != 1 {
					t.Errorf("store has %d entries, want the one of m5", store.Len())
				}
				for _, n := range logged.About(t, "record failed") {
					if n.Error != idempotency.ErrKeyMissing.Error() {
						t.Errorf("%s: error is %q, want %q", n.Record, n.Error, idempotency.ErrKeyMissing)
					}
				}
			})
		}
	}
}

// A key function that fails or panics fails its own message.
func TestKeyFunctionFails(t *testing.T) {
	errNoKey := errors.New("no key today")
	functions := map[string]func(*sqs.Options){
		"Options.Key": func(o *sqs.Options) {
			o.Key = func(v sqs.View) (string, error) {
				switch v.ID() {
				case "m2":
					return "ignored", errNoKey
				case "m3":
					panic("key function panics")
				}
				return v.ID(), nil
			}
		},
		"Options.Fingerprint": func(o *sqs.Options) {
			o.Fingerprint = func(v sqs.View) (string, error) {
				switch v.ID() {
				case "m2":
					return "", errNoKey
				case "m3":
					panic("key function panics")
				}
				return "f", nil
			}
		},
	}
	for name, function := range functions {
		for _, n := range []int{1, 10} {
			t.Run(fmt.Sprintf("%s, concurrency %d", name, n), func(t *testing.T) {
				var logged logs
				w := &worker{}
				h := newHandler(t, w.handle, concurrency(n), guarded(t), function, logged.option)
				wantFailures(t, t.Context(), h, event(numbered(4)...), "m2", "m3")
				w.want(t, "m1", "m4")
				if text := logged.Failure(t, "m2").Error; !strings.Contains(text, `of message "m2": no key today`) {
					t.Errorf("error is %q, want one that names message and cause", text)
				}
				if n := logged.Failure(t, "m3"); !strings.Contains(n.Error, "key function panics") || !strings.Contains(n.Stack, "key_test.go") {
					t.Errorf("line is %+v, want the panic with its stack", n)
				}
			})
		}
	}
}

// Case 22: what changes with each delivery is no part of the key, nor of the fingerprint.
func TestKeyOfARedelivery(t *testing.T) {
	for name, fingerprint := range map[string]func(*sqs.Options){
		"no fingerprint": func(*sqs.Options) {},
		"fingerprint":    func(o *sqs.Options) { o.Fingerprint = sqs.BodySHA256 },
	} {
		for _, arn := range []string{standardARN, fifoARN} {
			t.Run(name+", "+arn, func(t *testing.T) {
				w := &worker{}
				h := newHandler(t, w.handle, guarded(t), fingerprint)
				first := message{ID: "m1", Body: "body", Handle: "first", Receives: 1, ARN: arn, Group: "g"}
				again := first
				again.Handle, again.Receives = "second", 2
				wantFailures(t, t.Context(), h, event(first))
				wantFailures(t, t.Context(), h, event(again))
				wantFailures(t, t.Context(), h, event(again, first))
				w.want(t, "m1")
			})
		}
	}
}

// A business key recognises what a messageId cannot: a message that was redriven, or sent twice.
func TestKeyOfARedrive(t *testing.T) {
	var ran []string
	h := newHandler(t, func(_ context.Context, m *sqs.Message[order]) error {
		ran = append(ran, m.ID())
		return nil
	}, concurrency(1), guarded(t), sqs.KeyOf(func(o order) string { return o.ID }))
	wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: `{"id":"o1"}`}))
	wantFailures(t, t.Context(), h, event(message{ID: "m2", Body: `{"id":"o1"}`}, message{ID: "m3", Body: `{"id":"o2"}`}))
	if diff := cmp.Diff([]string{"m1", "m3"}, ran); diff != "" {
		t.Errorf("messages that ran (-want +got):\n%s", diff)
	}
}

// Middleware and sinks see the key. A record without a guard has none.
func TestKeyInMiddleware(t *testing.T) {
	for _, test := range []struct {
		options func(*sqs.Options)
		want    string
	}{{guarded(t), "m1"}, {func(*sqs.Options) {}, ""}} {
		w := &worker{}
		got := "no call"
		h := newHandler(t, w.handle, test.options, func(o *sqs.Options) {
			o.Middleware = []batch.Middleware{func(next batch.Handler) batch.Handler {
				return func(ctx context.Context, r *batch.Record) error {
					got = r.Key
					return next(ctx, r)
				}
			}}
		})
		wantFailures(t, t.Context(), h, event(numbered(1)...))
		if got != test.want {
			t.Errorf("key in middleware is %q, want %q", got, test.want)
		}
	}
}

// Keys that are hashed since they are personal data are in no log line either, whatever goes wrong with them.
func TestKeyHashedIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "alice@example.com"
		var logged logs
		store := &faults{}
		hashed := withStore(t, store, func(o *idempotency.Options) { o.HashKeys = true })
		release := make(chan struct{})
		h := newHandler(t, func(_ context.Context, m *sqs.Message[order]) error {
			if m.ID() == "m1" {
				<-release
			}
			return errors.New("no")
		}, hashed, sqs.KeyOf(func(o order) string { return o.ID }), logged.option, concurrency(1), func(o *sqs.Options) {
			o.Fingerprint = sqs.BodySHA256
		})
		same, other := `{"id":"`+key+`"}`, `{"id":"`+key+`","amount":2}`
		var first sync.WaitGroup
		first.Go(func() { wantFailures(t, t.Context(), h, event(message{ID: "m1", Body: same}), "m1") })
		synctest.Wait()
		wantFailures(t, t.Context(), h, event(message{ID: "in progress", Body: same}), "in progress")
		wantFailures(t, t.Context(), h, event(message{ID: "mismatch", Body: other}), "mismatch")
		close(release)
		first.Wait()
		wantFailures(t, t.Context(), h, event(message{ID: "leader", Body: same}, message{ID: "twin", Body: other}), "leader", "twin")
		store.OnRelease = func() error { return errStore }
		wantFailures(t, t.Context(), h, event(message{ID: "release fails", Body: same}), "release fails")
		store.OnClaim = func() error { return errStore }
		wantFailures(t, t.Context(), h, event(message{ID: "claim fails", Body: same}), "claim fails")
		if got := len(logged.About(t, "record failed")); got != 6 {
			t.Errorf("%d lines about failures, want 6", got)
		}
		if strings.Contains(logged.Text(), key) {
			t.Errorf("the key is in the log:\n%s", logged.Text())
		}
	})
}

// Two messages with one business key, of which the first is given up. The sink has that one only: the other comes back, and
// runs then.
func TestMaxAttemptsAndAnotherMessageWithTheKey(t *testing.T) {
	for _, permanent := range []bool{false, true} {
		var sunk []string
		w := &worker{errs: failing("m1")}
		if permanent {
			w.errs["m1"] = batch.Permanent(errors.New("no"))
		}
		h := newHandler(t, w.handle, concurrency(1), guarded(t), func(o *sqs.Options) {
			o.Key = func(sqs.View) (string, error) { return "order 1", nil }
			o.MaxAttempts = 3
			o.DeadLetter = func(_ context.Context, r *batch.Record, _ error) error { sunk = append(sunk, r.ID); return nil }
		})
		m1, m2 := message{ID: "m1", Receives: 3}, message{ID: "m2", Receives: 1}
		wantFailures(t, t.Context(), h, event(m1, m2, m1), "m2")
		w.wantOrder(t, "m1")
		if len(sunk) != 1 || sunk[0] != "m1" {
			t.Errorf("sink got %q, want m1", sunk)
		}
		m2.Receives = 2
		wantFailures(t, t.Context(), h, event(m2))
		w.wantOrder(t, "m2")
	}
}
