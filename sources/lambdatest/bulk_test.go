package lambdatest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// A store takes many requests in a call if the one within does, and no other.
func TestStoreForwardsBulk(t *testing.T) {
	f := newFunction(t, lambdatest.FunctionOptions{})
	if _, ok := f.Store(new(calls)).(idempotency.BulkStore); ok {
		t.Error("a store that takes one request at a time has become a BulkStore")
	}
	inner := storetest.Bulk(new(invalid))
	wrapped, ok := f.Store(inner).(idempotency.BulkStore)
	if !ok {
		t.Fatal("a BulkStore is none any more")
	}
	if diff := cmp.Diff(inner.BulkSizes(), wrapped.BulkSizes()); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
	if got := wrapped.(idempotency.Validator).Validate(); got != errNo {
		t.Errorf("Validate is %v, want %v", got, errNo)
	}
}

// claimAll claims the keys in one call. The answers are a word for each: claimed, or the error.
func claimAll(ctx context.Context, s idempotency.BulkStore, keys ...string) string {
	var requests []idempotency.ClaimRequest
	for _, key := range keys {
		requests = append(requests, idempotency.ClaimRequest{Key: key, Owner: key})
	}
	var words []string
	for i, a := range s.ClaimAll(ctx, requests) {
		switch {
		case a.Err != nil && a.Claimed:
			words = append(words, "claimed in spite of: "+a.Err.Error())
		case a.Err != nil:
			words = append(words, a.Err.Error())
		case a.Claimed && a.Entry.Owner == keys[i]:
			words = append(words, "claimed")
		default:
			words = append(words, fmt.Sprintf("%+v", a))
		}
	}
	return strings.Join(words, ", ")
}

// all makes one call of each method, with requests for the keys. What they answer is one word for each request.
func all(ctx context.Context, s idempotency.BulkStore, keys ...string) []string {
	var completes []idempotency.CompleteRequest
	var releases []idempotency.ReleaseRequest
	var renews []idempotency.RenewRequest
	for _, key := range keys {
		completes = append(completes, idempotency.CompleteRequest{Key: key})
		releases = append(releases, idempotency.ReleaseRequest{Key: key})
		renews = append(renews, idempotency.RenewRequest{Key: key})
	}
	words := func(errs []error) string {
		return strings.Trim(fmt.Sprint(errs), "[]")
	}
	return []string{
		claimAll(ctx, s, keys...), words(s.RenewAll(ctx, renews)), words(s.CompleteAll(ctx, completes)),
		words(s.ReleaseAll(ctx, releases)),
	}
}

// A call for many has one point before it and one after it, one fault, and an answer for each request.
func TestBulkStoreFaults(t *testing.T) {
	const three = "<nil> <nil> <nil>"
	arrived := []string{"Claim", "Renew", "Complete", "Release"}
	for _, test := range []struct {
		name  string
		fault lambdatest.Fault
		want  []string // the answers to ClaimAll, RenewAll, CompleteAll and ReleaseAll
		keys  string   // for which each arrived
	}{
		{"none", lambdatest.Fault{}, []string{"claimed, claimed, claimed", three, three, three}, "abc"},
		{"throttled", lambdatest.Fault{Err: errNo}, []string{"no, no, no", "no no no", "no no no", "no no no"}, ""},
		{"reply lost", lambdatest.Fault{Err: errNo, ReplyLost: true}, []string{"no, no, no", "no no no", "no no no", "no no no"}, "abc"},
		{"throttled in the middle", lambdatest.Fault{Err: errNo, Part: 2},
			[]string{"claimed, claimed, no", "<nil> <nil> no", "<nil> <nil> no", "<nil> <nil> no"}, "ab"},
		{"broken off in the middle", lambdatest.Fault{Err: errNo, Part: 1, ReplyLost: true},
			[]string{"no, no, no", "no no no", "no no no", "no no no"}, "a"},
		{"more than all", lambdatest.Fault{Err: errNo, Part: 4}, []string{"claimed, claimed, claimed", three, three, three}, "abc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var points log[lambdatest.Point]
				f := newFunction(t, lambdatest.FunctionOptions{
					StoreFault: func(p lambdatest.Point) lambdatest.Fault { points.add(p); return test.fault },
				})
				var store calls
				wrapped := f.Store(storetest.Bulk(&store)).(idempotency.BulkStore)
				var got []string
				invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
					got = all(ctx, wrapped, "a", "b", "c")
					return nil, nil
				})
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				var want []string
				var wantPoints []lambdatest.Point
				for _, method := range arrived {
					for _, key := range test.keys {
						want = append(want, method+" "+string(key))
					}
					wantPoints = append(wantPoints, lambdatest.Point{
						Moment: lambdatest.StoreCall, Name: method + "All", Key: "a", Keys: []string{"a", "b", "c"}, Invocation: 1,
					})
				}
				if diff := cmp.Diff(want, store.all(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("store calls (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(wantPoints, points.all()); diff != "" {
					t.Errorf("points (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A part without an error is one that says so, and a part of one request is that request.
func TestPartOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys log[string]
		f := newFunction(t, lambdatest.FunctionOptions{StoreFault: func(p lambdatest.Point) lambdatest.Fault {
			keys.add(fmt.Sprint(p.Name, " ", p.Key, " ", p.Keys))
			return lambdatest.Fault{Part: 1}
		}})
		var store calls
		wrapped := f.Store(storetest.Bulk(&store)).(idempotency.BulkStore)
		var got []string
		invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
			got = append(got, claimAll(ctx, wrapped, "a", "b"), claimAll(ctx, wrapped, "c"), claimAll(ctx, wrapped))
			return nil, wrapped.Release(ctx, idempotency.ReleaseRequest{Key: "d"})
		})
		want := []string{"claimed, lambdatest: the call failed before it came to this request", "claimed", ""}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"Claim a", "Claim c", "Release d"}, store.all()); diff != "" {
			t.Errorf("store calls (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"ClaimAll a [a b]", "ClaimAll c []", "ClaimAll  []", "Release d []"}, keys.all()); diff != "" {
			t.Errorf("points (-want +got):\n%s", diff)
		}
	})
}

// An invocation crashes before a call for many, in its middle, or before the reply: what was applied stays, and the
// function never sees an answer.
func TestCrashInABulkCall(t *testing.T) {
	for _, test := range []struct {
		moment lambdatest.Moment
		part   int
		want   []string
	}{
		{lambdatest.StoreCall, 0, nil},
		{lambdatest.StoreReply, 2, []string{"Complete a", "Complete b"}},
		{lambdatest.StoreReply, 0, []string{"Complete a", "Complete b", "Complete c"}},
	} {
		t.Run(fmt.Sprint(test.moment, " ", test.part), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFunction(t, lambdatest.FunctionOptions{
					Crash:      func(p lambdatest.Point) bool { return p.Moment == test.moment && len(p.Keys) == 3 },
					StoreFault: func(lambdatest.Point) lambdatest.Fault { return lambdatest.Fault{Part: test.part} },
				})
				var store calls
				wrapped := f.Store(storetest.Bulk(&store)).(idempotency.BulkStore)
				var returned log[error]
				r := invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
					returned.add(errors.Join(wrapped.CompleteAll(ctx, []idempotency.CompleteRequest{{Key: "a"}, {Key: "b"}, {Key: "c"}})...))
					return nil, nil
				})
				time.Sleep(time.Minute)
				if r.Ending != lambdatest.Crashed || len(returned.all()) > 0 {
					t.Errorf("the invocation %v and the call returned %v, want crashed and no answer", r.Ending, returned.all())
				}
				if diff := cmp.Diff(test.want, store.all(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("store calls (-want +got):\n%s", diff)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if got := returned.all(); len(got) != 1 || !errors.Is(got[0], lambdatest.ErrClosed) {
					t.Errorf("after Close the call returned %v, want ErrClosed for each request", got)
				}
			})
		})
	}
}

// transactions is a store with transactions that complete what they were begun for.
type transactions struct{ calls }

type ownTransaction struct{ store *transactions }

func (s *transactions) Begin(r idempotency.BeginRequest) idempotency.Transaction {
	s.add("Begin " + r.Key)
	return ownTransaction{s}
}

func (t ownTransaction) Close() bool { return true }

func (t ownTransaction) Complete(ctx context.Context, r idempotency.CompleteRequest) error {
	return t.store.Complete(ctx, r)
}

// A transaction completes by a call of the function, and the store's package finds its own.
func TestStoreForwardsTransactions(t *testing.T) {
	for name, wrap := range map[string]func(idempotency.Store) idempotency.Store{
		"single": func(s idempotency.Store) idempotency.Store { return s },
		"bulk": func(s idempotency.Store) idempotency.Store {
			return struct {
				idempotency.BulkStore
				idempotency.Transactor
			}{storetest.Bulk(s), s.(idempotency.Transactor)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFunction(t, lambdatest.FunctionOptions{StoreFault: func(p lambdatest.Point) lambdatest.Fault {
					if p.Name == "Complete" && p.Key == "b" {
						return lambdatest.Fault{Err: errThrottled}
					}
					return lambdatest.Fault{}
				}})
				var store transactions
				wrapped := f.Store(wrap(&store)).(idempotency.Transactor)
				var got []error
				invoke(t, f, nothing, func(ctx context.Context, payload []byte) ([]byte, error) {
					for _, key := range []string{"a", "b"} {
						tx := wrapped.Begin(idempotency.BeginRequest{Key: key})
						if inner, ok := tx.(interface {
							Unwrap() idempotency.Transaction
						}).Unwrap().(ownTransaction); !ok || !tx.Close() {
							t.Errorf("the transaction is %v within, want the store's, with something collected", inner)
						}
						got = append(got, tx.Complete(ctx, idempotency.CompleteRequest{Key: key}))
					}
					return nil, nil
				})
				if got[0] != nil || got[1] != errThrottled {
					t.Errorf("the transactions completed with %v, want nil and throttled", got)
				}
				if diff := cmp.Diff([]string{"Begin a", "Complete a", "Begin b"}, store.all()); diff != "" {
					t.Errorf("store calls (-want +got):\n%s", diff)
				}
				if tx := f.Store(new(calls)).(idempotency.Transactor).Begin(idempotency.BeginRequest{}); tx != nil {
					t.Errorf("a store without transactions begins %v, want nil", tx)
				}
			})
		})
	}
}
