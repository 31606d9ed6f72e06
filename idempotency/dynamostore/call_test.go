package dynamostore_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

// fake is a client without a server, for tests of what happens before and between requests.
type fake struct {
	dynamostore.Client // nil: its other methods must not be called
	put                func(context.Context) error
	table              *string // the table of the last PutItem, if it is not nil
}

func (f *fake) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if f.table != nil {
		*f.table = *in.TableName
	}
	if err := f.put(ctx); err != nil {
		return nil, err
	}
	return &dynamodb.PutItemOutput{}, nil
}

func TestCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFlight, end := 0, make(chan struct{})
		store := dynamostore.New(&fake{put: func(context.Context) error {
			inFlight++
			<-end
			return nil
		}}, "table", func(o *dynamostore.Options) { o.MaxInFlight = 2 })
		results := make(chan error)
		claim := func(ctx context.Context) {
			_, err := store.Claim(ctx, claimRequest("k", "a"))
			results <- err
		}
		for range 2 {
			go claim(t.Context())
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		go claim(ctx)
		synctest.Wait()
		go claim(t.Context())
		synctest.Wait()
		if inFlight != 2 {
			t.Fatalf("%d calls are in flight; want 2", inFlight)
		}

		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "one of 2 calls in flight") {
			t.Errorf("error is %v; want one that names the bound and is context.Canceled", err)
		}
		end <- struct{}{}
		if err := <-results; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if inFlight != 3 {
			t.Errorf("%d calls were made after one has ended; want 3", inFlight)
		}
		close(end)
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestPanicInClient has a client panic. Its place among the calls in flight must be free again.
func TestPanicInClient(t *testing.T) {
	store := dynamostore.New(&fake{put: func(context.Context) error { panic("broken") }}, "table",
		func(o *dynamostore.Options) { o.MaxInFlight = 1 })
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Claim did not panic")
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := store.Claim(ctx, claimRequest("k", "a"))
			t.Errorf("Claim returned %v", err)
		}()
	}
}

func TestConflictBackoff(t *testing.T) {
	for _, test := range []struct {
		name        string
		timeout     time.Duration
		cancelAfter time.Duration
		minCalls    int
		maxCalls    int
		longest     time.Duration
	}{
		{"time enough", time.Minute, 0, 5, 5, (25 + 50 + 100 + 200) * time.Millisecond},
		{"no time for a second call", time.Nanosecond, 0, 1, 1, 0},
		{"cancelled meanwhile", time.Minute, time.Millisecond, 1, 5, time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				store := dynamostore.New(&fake{put: func(context.Context) error {
					calls++
					return &types.TransactionConflictException{}
				}}, "table")
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				if test.cancelAfter > 0 {
					time.AfterFunc(test.cancelAfter, cancel)
				}
				_, err := store.Claim(ctx, claimRequest("k", "a"))
				var conflict *types.TransactionConflictException
				if !isUndecided(err) || !errors.As(err, &conflict) {
					t.Errorf("error is %v; want an undecided one with the conflict", err)
				}
				if calls < test.minCalls || calls > test.maxCalls {
					t.Errorf("%d calls; want %d to %d", calls, test.minCalls, test.maxCalls)
				}
				if took := time.Since(start); took > test.longest || test.minCalls > 1 && took == 0 {
					t.Errorf("took %v; want more than nothing and at most %v", took, test.longest)
				}
			})
		})
	}
}

// TestCallTimeout has a client that never answers, and callers with much time. What comes of the call is open.
func TestCallTimeout(t *testing.T) {
	for _, test := range []struct{ option, want time.Duration }{{0, 3 * time.Second}, {time.Second, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			store := dynamostore.New(&fake{put: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, "table",
				func(o *dynamostore.Options) { o.CallTimeout = test.option })
			start := time.Now()
			_, err := store.Claim(t.Context(), claimRequest("k", "a"))
			if took := time.Since(start); took != test.want {
				t.Errorf("CallTimeout %v: gave up after %v; want %v", test.option, took, test.want)
			}
			if !isUndecided(err) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error is %v; want an undecided one that is context.DeadlineExceeded", err)
			}
		})
	}
}

// TestCompletionUnanswered has a server hang, once the work is done, until long after. It holds the work up for as long as
// three calls may take, and no longer: the work is done, and not recorded so.
func TestCompletionUnanswered(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t)
	p := newPlanter(t, proxy.Client(t), layouts()[0].options)
	store := dynamostore.New(proxy.Client(t), p.table, func(o *dynamostore.Options) { o.CallTimeout = 100 * time.Millisecond })
	guard, err := idempotency.New("orders", store, func(o *idempotency.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	if err != nil {
		t.Fatal(err)
	}
	hangs := func(x *dynamotest.Exchange) { x.Wait(time.Minute) }
	proxy.Script("UpdateItem", hangs, hangs, hangs, hangs)
	proxy.Requests()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	start := time.Now()
	got, err := idempotency.Do(ctx, guard, "k", func(context.Context) (int, error) { return 1, nil })
	if want := (idempotency.Result[int]{Value: 1, Unrecorded: true}); got != want || err != nil {
		t.Errorf("Do = %+v, %v; want %+v", got, err, want)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v; want well less than the 10s of the invocation", took)
	}
	if diff := cmp.Diff(map[string]int{"PutItem": 1, "UpdateItem": 3}, proxy.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
