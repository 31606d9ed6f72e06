package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
	"github.com/oncekit/oncekit/deadletter"
)

func TestNew(t *testing.T) {
	const example = ", want one such as https://sqs.eu-central-1.amazonaws.com/123456789012/orders-dead"
	for _, test := range []struct {
		name   string
		client deadletter.Client
		url    string
		option func(*deadletter.Options)
		want   string
	}{
		{"standard", &client{}, standardURL, nil, ""},
		{"FIFO", &client{}, fifoURL, nil, ""},
		{"a server of one's own", &client{}, "http://localhost:9324/queue/orders", nil, ""},
		{"with a timeout", &client{}, standardURL, func(o *deadletter.Options) { o.CallTimeout = 1 }, ""},
		{"no client", nil, standardURL, nil, "deadletter: client is nil, want a *sqs.Client"},
		{"nil client", (*sqs.Client)(nil), standardURL, nil, "deadletter: client is nil, want a *sqs.Client"},
		{"no URL", &client{}, "", nil, `deadletter: queue URL is ""` + example},
		{"name", &client{}, "orders", nil, `deadletter: queue URL is "orders"` + example},
		{"ARN", &client{}, "arn:aws:sqs:eu-central-1:123456789012:orders", nil,
			`deadletter: queue URL is "arn:aws:sqs:eu-central-1:123456789012:orders"` + example},
		{"no host", &client{}, "https:///orders", nil, `deadletter: queue URL is "https:///orders"` + example},
		{"no queue", &client{}, "https://sqs.eu-central-1.amazonaws.com/", nil, `deadletter: queue URL is "https://sqs.eu-central-1.amazonaws.com/"` + example},
		{"slash at the end", &client{}, standardURL + ".fifo/", nil, `deadletter: queue URL is "` + standardURL + `.fifo/"` + example},
		{"query", &client{}, standardURL + ".fifo?x=1", nil, `deadletter: queue URL is "` + standardURL + `.fifo?x=1"` + example},
		{"empty query", &client{}, standardURL + ".fifo?", nil, `deadletter: queue URL is "` + standardURL + `.fifo?"` + example},
		{"fragment", &client{}, standardURL + ".fifo#x", nil, `deadletter: queue URL is "` + standardURL + `.fifo#x"` + example},
		{"no URL at all", &client{}, "https://%", nil, `deadletter: queue URL is "https://%"` + example},
		{"negative timeout", &client{}, standardURL, func(o *deadletter.Options) { o.CallTimeout = -1 },
			"deadletter: Options.CallTimeout is -1ns, want 0 (for 3s) or more"},
		{"all wrong", nil, "", func(o *deadletter.Options) { o.CallTimeout = -1 }, "deadletter: client is nil, want a *sqs.Client\n" +
			`deadletter: queue URL is ""` + example + "\ndeadletter: Options.CallTimeout is -1ns, want 0 (for 3s) or more"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := deadletter.New(test.client, test.url, nil, test.option)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if (s == nil) != (err != nil) {
				t.Errorf("sink is %v with the error %v, want one of the two", s, err)
			}
		})
	}
}

// blocked is a client that answers a request when it is told to, or when the request's context ends.
type blocked struct {
	client
	deaf    bool          // to its context
	release chan struct{} // a value a request, or closed
}

func newBlocked() *blocked {
	b := &blocked{release: make(chan struct{})}
	b.answer = func(ctx context.Context, _ *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) (*sqs.SendMessageBatchOutput, error) {
		ended := ctx.Done()
		if b.deaf {
			ended = nil
		}
		select {
		case <-b.release:
			return out, nil
		case <-ended:
			return nil, ctx.Err()
		}
	}
	return b
}

// call is a call of DeadLetter on a goroutine of its own.
type call struct {
	returned atomic.Bool
	err      error
	cancel   context.CancelFunc
}

// start calls DeadLetter, and returns when everything waits.
func start(t *testing.T, s *deadletter.Sink, r *batch.Record) *call {
	ctx, cancel := context.WithCancel(t.Context())
	c := &call{cancel: cancel}
	go func() {
		c.err = s.DeadLetter(ctx, r, errBoom)
		c.returned.Store(true)
	}()
	synctest.Wait()
	return c
}

// leave cancels the call's context, and returns when everything waits.
func (c *call) leave() {
	c.cancel()
	synctest.Wait()
}

// state is "waits", "sent" or the error.
func (c *call) state() string {
	switch {
	case !c.returned.Load():
		return "waits"
	case c.err == nil:
		return "sent"
	}
	return c.err.Error()
}

func states(calls ...*call) (all []string) {
	for _, c := range calls {
		all = append(all, c.state())
	}
	return all
}

const (
	notSent  = "deadletter: letter was not sent: context canceled"
	noAnswer = "deadletter: no answer from SQS, the letter may be in the queue: context canceled"
)

// The first call sends at once. Those that come meanwhile go together when its request ends, up to ten of them, or as soon
// as there are ten.
func TestCallsShareRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBlocked()
		s := newSink(t, b, standardURL)
		calls := []*call{start(t, s, record("0"))}
		if got, want := b.ids(t), "[0]"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		for i := range 14 {
			calls = append(calls, start(t, s, record(fmt.Sprint(i+1))))
		}
		if got, want := b.ids(t), "[0][1 2 3 4 5 6 7 8 9 10]"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		b.release <- struct{}{}
		synctest.Wait()
		if got, want := b.ids(t), "[0][1 2 3 4 5 6 7 8 9 10][11 12 13 14]"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		close(b.release)
		synctest.Wait()
		for i, state := range states(calls...) {
			if state != "sent" {
				t.Errorf("call %d: %s, want it sent", i, state)
			}
		}
		for _, in := range b.sent() {
			seen := map[string]bool{}
			for _, e := range in.Entries {
				if seen[*e.Id] {
					t.Errorf("entry id %q twice in one request, want another for each", *e.Id)
				}
				seen[*e.Id] = true
			}
		}
	})
}

// A request has no more than 1 MiB of letters.
func TestRequestSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBlocked()
		s := newSink(t, b, standardURL)
		first := record("first")
		calls := []*call{start(t, s, first)}
		overhead := len(*b.sent()[0].Entries[0].MessageBody) - len(first.Value.(value))
		sized := func(id string, bytes int) *batch.Record {
			r := record(id)
			r.Value = value(`"` + strings.Repeat("x", bytes-overhead-len(`""`)+len("first")-len(id)) + `"`)
			return r
		}
		calls = append(calls, start(t, s, sized("half", deadletter.MaxBytes/2)))
		start(t, s, sized("gone", deadletter.MaxBytes/2)).leave() // and takes its bytes with it
		calls = append(calls, start(t, s, sized("rest", deadletter.MaxBytes/2)),
			start(t, s, sized("most", deadletter.MaxBytes-1000)), start(t, s, sized("more", 1001)))
		close(b.release)
		synctest.Wait()
		if diff := cmp.Diff([]string{"sent", "sent", "sent", "sent", "sent"}, states(calls...)); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if got, want := b.ids(t), "[first][half rest][most][more]"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		for i, in := range b.sent() {
			sum := 0
			for _, e := range in.Entries {
				sum += len(*e.MessageBody)
			}
			if sum > deadletter.MaxBytes || i == 1 && sum != deadletter.MaxBytes {
				t.Errorf("request %d has %d bytes, want %d at most, and in the second", i, sum, deadletter.MaxBytes)
			}
		}
	})
}

// A thousand calls at once are hardly more than a hundred requests.
func TestManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBlocked()
		s := newSink(t, b, standardURL)
		calls := make(chan error)
		for i := range 1000 {
			go func() { calls <- s.DeadLetter(t.Context(), record(fmt.Sprint(i)), errBoom) }()
		}
		synctest.Wait()
		close(b.release)
		for range 1000 {
			if err := <-calls; err != nil {
				t.Error(err)
			}
		}
		seen := map[string]int{}
		for _, l := range b.letters(t) {
			seen[l.ID]++
		}
		if len(seen) != 1000 {
			t.Errorf("%d letters, want 1000", len(seen))
		}
		if n := len(b.sent()); n > 101 {
			t.Errorf("%d requests, want 101 at most", n)
		}
	})
}

// The calls of one batch's workers share requests too: each is late by the time of one request at most.
func TestBatchSharesRequests(t *testing.T) {
	for _, concurrency := range []int{1, 10, 100} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const delay = 10 * time.Millisecond
				c := client{answer: func(_ context.Context, _ *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) (*sqs.SendMessageBatchOutput, error) {
					time.Sleep(delay) // virtual
					return out, nil
				}}
				s := newSink(t, &c, standardURL)
				var records []batch.Record
				for i := range 1000 {
					records = append(records, *record(fmt.Sprint(i)))
				}
				report, err := batch.Process(t.Context(), records, permanent, func(o *batch.Options) {
					o.DeadLetter, o.Concurrency, o.Logger = s.DeadLetter, concurrency, silent
				})
				if err != nil {
					t.Fatal(err)
				}
				if n := report.Count(batch.DeadLettered); n != 1000 {
					t.Errorf("%d records are dead-lettered, want 1000", n)
				}
				requests := len(c.sent())
				t.Logf("%d requests, %v", requests, report.Duration)
				if limit := 1000 / min(concurrency, 10) * 22 / 10; concurrency > 1 && requests > limit {
					t.Errorf("%d requests, want %d at most", requests, limit)
				}
				if limit := 2 * delay * time.Duration(1000/concurrency+1); report.Duration > limit {
					t.Errorf("took %v, want %v at most", report.Duration, limit)
				}
			})
		})
	}
}

// silent is a logger for batches in which records fail.
var silent = slog.New(slog.DiscardHandler)

func permanent(context.Context, *batch.Record) error { return batch.Permanent(errBoom) }

// Who leaves returns at once, and nobody else notices.
func TestLeave(t *testing.T) {
	t.Run("before the call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var c client
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err := newSink(t, &c, standardURL).DeadLetter(ctx, record("m1"), errBoom)
			synctest.Wait()
			if err == nil || err.Error() != notSent || len(c.sent()) > 0 {
				t.Errorf("error is %v after %d requests, want %s after none", err, len(c.sent()), notSent)
			}
		})
	})
	t.Run("the cause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSink(t, newBlocked(), standardURL)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBoom)
			defer cancel()
			begin := time.Now()
			if err := s.DeadLetter(ctx, record("m1"), nil); !errors.Is(err, errBoom) || time.Since(begin) != time.Second {
				t.Errorf("error is %v after %v, want the context's cause after 1s", err, time.Since(begin))
			}
		})
	})
	t.Run("the one whose call sent first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBlocked()
			s := newSink(t, b, standardURL)
			first := start(t, s, record("0"))
			var calls []*call
			for i := range 10 {
				calls = append(calls, start(t, s, record(fmt.Sprint(i+1))))
			}
			calls[0].leave() // its context is that of the request's first letter
			if got := calls[0].state(); got != noAnswer {
				t.Errorf("left: %s, want %s", got, noAnswer)
			}
			close(b.release)
			synctest.Wait()
			for _, c := range append(calls[1:], first) {
				if got := c.state(); got != "sent" {
					t.Errorf("stayed: %s, want it sent", got)
				}
			}
		})
	})
	t.Run("while gathering", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBlocked()
			s := newSink(t, b, standardURL)
			first, second, third := start(t, s, record("1")), start(t, s, record("2")), start(t, s, record("3"))
			second.leave()
			close(b.release)
			synctest.Wait()
			if diff := cmp.Diff([]string{"sent", notSent, "sent"}, states(first, second, third)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if got, want := b.ids(t), "[1][3]"; got != want {
				t.Errorf("sent %s, want %s: a letter that nobody waits for is not sent", got, want)
			}
		})
	})
	t.Run("all while gathering", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBlocked()
			s := newSink(t, b, standardURL)
			first, second := start(t, s, record("1")), start(t, s, record("2"))
			second.leave()
			b.release <- struct{}{}
			synctest.Wait()
			third := start(t, s, record("3"))
			close(b.release)
			synctest.Wait()
			if diff := cmp.Diff([]string{"sent", notSent, "sent"}, states(first, second, third)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if got, want := b.ids(t), "[1][3]"; got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
		})
	})
	t.Run("all while under way: the request is cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var cancelled bool
			c := client{answer: func(ctx context.Context, _ *sqs.SendMessageBatchInput, _ *sqs.SendMessageBatchOutput) (*sqs.SendMessageBatchOutput, error) {
				<-ctx.Done()
				cancelled = errors.Is(ctx.Err(), context.Canceled)
				return nil, ctx.Err()
			}}
			s := newSink(t, &c, standardURL)
			start(t, s, record("1")).leave()
			if !cancelled {
				t.Error("the request goes on, want it cancelled: nobody waits for it")
			}
		})
	})
	// A request that nobody waits for any more is in nobody's way, even if the client does not hear that it is cancelled.
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("all while under way, deaf client ", deaf), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBlocked()
				b.deaf = deaf
				s := newSink(t, b, standardURL)
				first, second := start(t, s, record("1")), start(t, s, record("2"))
				first.leave()
				if got, want := b.ids(t), "[1][2]"; got != want {
					t.Errorf("sent %s, want %s", got, want)
				}
				third := start(t, s, record("3"))
				b.release <- struct{}{} // to 1 or 2: neither may end the other's
				synctest.Wait()
				close(b.release)
				synctest.Wait()
				if diff := cmp.Diff([]string{noAnswer, "sent", "sent"}, states(first, second, third)); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				// Whatever ended twice would count requests wrongly from now on: one call sends at once, the next gathers.
				b.release = make(chan struct{})
				before := len(b.sent())
				fourth, fifth := start(t, s, record("4")), start(t, s, record("5"))
				if n := len(b.sent()) - before; n != 1 {
					t.Errorf("%d requests for two calls, want 1 until it ends", n)
				}
				close(b.release)
				synctest.Wait()
				if diff := cmp.Diff([]string{"sent", "sent"}, states(fourth, fifth)); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
	t.Run("when the answer has come", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for range 100 { // select chooses at random between the two
				var c client
				if err := newSink(t, &c, standardURL).DeadLetter(late{t.Context()}, record("1"), errBoom); err != nil {
					t.Fatalf("error is %v, want none: SQS has taken the letter", err)
				}
			}
		})
	})
}

// late is a context that ends after all that happens meanwhile has happened.
type late struct{ context.Context }

func (late) Done() <-chan struct{} {
	synctest.Wait()
	ended := make(chan struct{})
	close(ended)
	return ended
}

// The client sees the values of the first letter's context, and a deadline of its own.
func TestClientContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var got any
		var left time.Duration
		c := client{answer: func(ctx context.Context, _ *sqs.SendMessageBatchInput, out *sqs.SendMessageBatchOutput) (*sqs.SendMessageBatchOutput, error) {
			deadline, _ := ctx.Deadline()
			got, left = ctx.Value(key{}), time.Until(deadline)
			return out, nil
		}}
		ctx := context.WithValue(t.Context(), key{}, "trace")
		if err := newSink(t, &c, standardURL).DeadLetter(ctx, record("m1"), errBoom); err != nil {
			t.Fatal(err)
		}
		if got != "trace" || left != 3*time.Second {
			t.Errorf("client's context has value %v and %v left, want trace and 3s", got, left)
		}
	})
}

// A request that hangs fails its letters and lets the next go.
func TestCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		b := newBlocked()
		s := newSink(t, b, standardURL, func(o *deadletter.Options) { o.CallTimeout = time.Second })
		first, second := start(t, s, record("1")), start(t, s, record("2"))
		time.Sleep(time.Second)
		synctest.Wait()
		const want = "deadletter: no answer from " + standardURL + " within 1s, the letter may be there: context deadline exceeded"
		if diff := cmp.Diff([]string{want, "waits"}, states(first, second)); diff != "" {
			t.Errorf("calls after %v (-want +got):\n%s", time.Since(begin), diff)
		}
		close(b.release)
		synctest.Wait()
		if got := second.state(); got != "sent" {
			t.Errorf("second call: %s, want it sent", got)
		}
	})
}

// Each call gets what SQS says about its own letter.
func TestAnswer(t *testing.T) {
	refused := func(id, code, message string, senderFault bool) types.BatchResultErrorEntry {
		return types.BatchResultErrorEntry{Id: &id, Code: &code, Message: &message, SenderFault: senderFault}
	}
	taken := func(ids ...string) (all []types.SendMessageBatchResultEntry) {
		for _, id := range ids {
			all = append(all, types.SendMessageBatchResultEntry{Id: aws.String(id)})
		}
		return all
	}
	type output = sqs.SendMessageBatchOutput
	const (
		internal = "deadletter: SQS refused the letter: InternalError: try again (the fault of SQS)"
		invalid  = "deadletter: SQS refused the letter: InvalidParameterValue (the fault of the sender)"
		unsaid   = "deadletter: SQS did not say what became of the letter"
		send     = "deadletter: send to " + standardURL + ": "
	)
	for _, test := range []struct {
		name   string
		answer func() (*output, error)
		want   []string // of the letters 0, 1 and 2
	}{
		{"all taken", func() (*output, error) { return &output{Successful: taken("2", "0", "1")}, nil }, []string{"sent", "sent", "sent"}},
		{"some refused", func() (*output, error) {
			return &output{
				Successful: taken("1"),
				Failed:     []types.BatchResultErrorEntry{refused("2", "InvalidParameterValue", "", true), refused("0", "InternalError", "try again", false)},
			}, nil
		}, []string{internal, "sent", invalid}},
		{"both taken and refused", func() (*output, error) {
			return &output{
				Successful: taken("0", "1", "2"), Failed: []types.BatchResultErrorEntry{refused("1", "InternalError", "try again", false)},
			}, nil
		}, []string{"sent", internal, "sent"}},
		{"not named", func() (*output, error) { return &output{Successful: taken("0", "2")}, nil }, []string{"sent", unsaid, "sent"}},
		{"other names", func() (*output, error) {
			return &output{Successful: append(taken("-1", "3", "x", "", "1"), types.SendMessageBatchResultEntry{})}, nil
		}, []string{unsaid, "sent", unsaid}},
		{"an empty refusal", func() (*output, error) {
			return &output{Successful: taken("0", "2"), Failed: []types.BatchResultErrorEntry{{Id: aws.String("1")}, {}}}, nil
		}, []string{"sent", "deadletter: SQS refused the letter:  (the fault of SQS)", "sent"}},
		{"nothing", func() (*output, error) { return &output{}, nil }, []string{unsaid, unsaid, unsaid}},
		{"nil", func() (*output, error) { return nil, nil }, []string{unsaid, unsaid, unsaid}},
		{"an error", func() (*output, error) { return nil, errBoom }, []string{send + "boom", send + "boom", send + "boom"}},
		{"an error and an answer", func() (*output, error) { return &output{Successful: taken("0", "1", "2")}, errBoom },
			[]string{send + "boom", send + "boom", send + "boom"}},
		{"a panic", func() (*output, error) { panic("oh") },
			[]string{"deadletter: Client panicked: oh", "deadletter: Client panicked: oh", "deadletter: Client panicked: oh"}},
		{"Goexit", func() (*output, error) { runtime.Goexit(); return nil, nil }, []string{
			"deadletter: Client called runtime.Goexit", "deadletter: Client called runtime.Goexit", "deadletter: Client called runtime.Goexit",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBlocked()
				s := newSink(t, b, standardURL)
				first := start(t, s, record("first"))
				calls := []*call{start(t, s, record("0")), start(t, s, record("1")), start(t, s, record("2"))}
				script := b.answer
				b.answer = func(context.Context, *sqs.SendMessageBatchInput, *output) (*output, error) { return test.answer() }
				b.release <- struct{}{}
				synctest.Wait()
				if diff := cmp.Diff(append([]string{"sent"}, test.want...), states(append([]*call{first}, calls...)...)); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				for i, c := range calls {
					refusal, is := errors.AsType[*deadletter.EntryError](c.err)
					if want := strings.Contains(test.want[i], "refused"); is != want {
						t.Errorf("call %d: is an EntryError: %v, want %v", i, is, want)
					} else if want := strings.Contains(test.want[i], "fault of the sender"); is && refusal.SenderFault != want {
						t.Errorf("call %d: sender's fault: %v, want %v", i, refusal.SenderFault, want)
					}
				}
				b.answer = script
				after := start(t, s, record("after"))
				close(b.release)
				synctest.Wait()
				if got := after.state(); got != "sent" {
					t.Errorf("call after that: %s, want it sent", got)
				}
			})
		})
	}
}
