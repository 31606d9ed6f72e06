package shardtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/lambdatest"
	"github.com/oncekit/oncekit/sources/shardtest"
)

// stateful is a handler whose answer has the state that fn returns.
func stateful(fn func(e event) string) lambdatest.HandlerFunc {
	return handler(func(_ context.Context, e event) (string, error) { return `{"state":` + fn(e) + `}`, nil })
}

// collect is a handler whose state is the names so far.
var collect = stateful(func(e event) string { return collected(e.State, e.Records...) })

func collected(state json.RawMessage, names ...string) string {
	var s struct{ Names string }
	if err := json.Unmarshal(state, &s); err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"names":%q}`, s.Names+strings.Join(names, ""))
}

// windows is the log of a stream with tumbling windows, each line with the window's start, the state and the flags.
func (s *stream) windows(start time.Time) []string {
	var lines []string
	for i, line := range s.log(start) {
		d := s.observed()[i]
		line = fmt.Sprintf("%s [%v] %s", line, d.Window.Start.Sub(start).Seconds(), d.Window.State)
		if d.Window.Final {
			line += " final"
		}
		if d.Window.TerminatedEarly {
			line += " early"
		}
		lines = append(lines, line)
	}
	return lines
}

func windowed(length time.Duration) func(*shardtest.Options) {
	return func(o *shardtest.Options) { o.TumblingWindow = length }
}

// A bubble begins at midnight, and so at the beginning of a window.
func TestWindows(t *testing.T) {
	for _, test := range []struct {
		name   string
		option func(*shardtest.Options)
		run    func(s *stream)
		h      lambdatest.Handler
		want   []string
	}{
		{name: "two minutes after its end", run: func(s *stream) { s.put("s", "a b") }, want: []string{
			`0 a b [0] {}`, `180  [0] {"names":"ab"} final`,
		}},
		{name: "with a later record", run: func(s *stream) {
			s.put("s", "a")
			go func() {
				time.Sleep(70 * time.Second)
				s.put("s", "b")
			}()
		}, want: []string{
			`0 a [0] {}`, `70  [0] {"names":"a"} final`, `70 b [60] {}`, `240  [60] {"names":"b"} final`,
		}},
		{name: "records left for the final invocation", run: func(s *stream) {
			s.put("s", "a b")
			time.Sleep(60 * time.Second)
			s.put("s", "c")
			s.closeShard("s")
		}, want: []string{`60 a b [0] {} final`, `60 c [60] {} final`}},
		{name: "several batches", option: func(o *shardtest.Options) { o.BatchSize = 2 }, run: func(s *stream) {
			s.put("s", "a b c")
			s.closeShard("s")
		}, want: []string{`0 a b [0] {}`, `0 c [0] {"names":"ab"} final`}},
		{name: "a shard that ends", run: func(s *stream) {
			s.put("s", "a")
			s.open("child", "s")
			s.put("child", "b")
			go func() {
				time.Sleep(time.Second)
				s.closeShard("s")
			}()
		}, want: []string{
			`0 a [0] {}`, `1  [0] {"names":"a"} final`, `1 b [0] {}`, `180  [0] {"names":"b"} final`,
		}},
		{name: "a record at the end belongs to the next", run: func(s *stream) {
			time.Sleep(59*time.Second + 999*time.Millisecond)
			s.put("s", "a")
			time.Sleep(time.Millisecond)
			s.put("s", "b")
			s.closeShard("s")
		}, want: []string{`60 a [0] {} final`, `60 b [60] {} final`}},
		{name: "an error keeps the state", run: func(s *stream) { s.put("s", "a") }, h: failing(func(n int, e event) (string, error) {
			if n == 2 {
				return "", errNo
			}
			return `{"state":` + collected(e.State, e.Records...) + `}`, nil
		}), want: []string{`0 a [0] {}`, `180  [0] {"names":"a"} final`, `180.1  [0] {"names":"a"} final`}},
		{name: "a partial failure moves state and checkpoint", run: func(s *stream) { s.put("s", "a b c") },
			h: failing(func(n int, e event) (string, error) {
				if n == 1 {
					return `{"state":` + collected(e.State, "a") + `,` + report("b")[1:], nil
				}
				return `{"state":` + collected(e.State, e.Records...) + `}`, nil
			}), want: []string{`0 a b c [0] {}`, `0 b c [0] {"names":"a"}`, `180  [0] {"names":"abc"} final`}},
		{name: "halves of a final batch", option: func(o *shardtest.Options) { o.BisectOnError = true }, run: func(s *stream) {
			s.put("s", "a b")
			s.closeShard("s")
		}, h: failing(func(n int, e event) (string, error) {
			if n == 1 {
				return "", errNo
			}
			return `{"state":` + collected(e.State, e.Records...) + `}`, nil
		}), want: []string{`0 a b [0] {} final`, `0 a [0] {}`, `0 b [0] {"names":"a"} final`}},
		{name: "what is given up is not in the state", option: func(o *shardtest.Options) {
			o.MaximumRetryAttempts, o.BatchSize = 0, 1
		}, run: func(s *stream) {
			s.put("s", "a b c")
			s.closeShard("s")
		}, h: failing(func(_ int, e event) (string, error) {
			if len(e.Records) > 0 && e.Records[0] != "a" {
				return "", errNo
			}
			return `{"state":` + collected(e.State, e.Records...) + `}`, nil
		}), want: []string{
			`0 a [0] {}`, `0 b [0] {"names":"a"}`, `0 c [0] {"names":"a"} final`, `0  [0] {"names":"a"} final`,
		}},
		{name: "a final invocation that is given up", option: func(o *shardtest.Options) { o.MaximumRetryAttempts = 1 },
			run: func(s *stream) {
				s.put("s", "a")
				go func() {
					time.Sleep(60 * time.Second)
					s.put("s", "b")
				}()
			}, h: failing(func(_ int, e event) (string, error) {
				if e.IsFinalInvokeForWindow && e.Window.Start.Second() == 0 && string(e.State) == `{"names":"a"}` {
					return "", errNo
				}
				return `{"state":` + collected(e.State, e.Records...) + `}`, nil
			}), want: []string{
				`0 a [0] {}`, `60  [0] {"names":"a"} final`, `60.1  [0] {"names":"a"} final`, `60.1 b [60] {}`,
				`240  [60] {"names":"b"} final`,
			}},
		{name: "a lost answer", option: func(o *shardtest.Options) { o.DuplicateProbability, o.Seed = .5, seedThatLosesFirst },
			run: func(s *stream) { s.put("s", "a") }, want: []string{
				`0 a [0] {}`, `0 a [0] {}`, `180  [0] {"names":"a"} final`,
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t, windowed(time.Minute), func(o *shardtest.Options) {
					if test.option != nil {
						test.option(o)
					}
				})
				start := time.Now()
				test.run(s)
				if test.h == nil {
					test.h = collect
				}
				s.drain(test.h)
				if diff := cmp.Diff(test.want, s.windows(start)); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// seedThatLosesFirst loses the first answer to the batch "a" and no other of its test.
const seedThatLosesFirst = 14

// failing is a handler that counts its calls from 1.
func failing(fn func(n int, e event) (string, error)) lambdatest.HandlerFunc {
	n := 0
	return handler(func(_ context.Context, e event) (string, error) {
		n++
		return fn(n, e)
	})
}

func TestAnswersWithoutState(t *testing.T) {
	for answer, want := range map[string]string{
		"":                         "must have a state",
		"null":                     "must have a state",
		`{"batchItemFailures":[]}`: "must have a state",
		`{"State":{}}`:             "must have a state",
		`{"state":null}`:           `state is "null", but must be an object`,
		`{"state":[1]}`:            `state is "[1]", but must be an object`,
		`{"state":"text"}`:         "must be an object",
		`{"state":{},"batchItemFailures":[{"itemIdentifier":"x"}]}`: "not in the batch",
	} {
		t.Run(answer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t, windowed(time.Minute))
				s.put("s", "a b")
				s.drain(failing(func(n int, e event) (string, error) {
					if n == 1 {
						return answer, nil
					}
					return `{"state":{}}`, nil
				}))
				if diff := cmp.Diff([]string{"a b", "a b", ""}, s.batches()); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
				if err := s.observed()[0].Err; err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error is %v, want it to contain %q", err, want)
				}
			})
		})
	}
}

// The state is read even if failures are not.
func TestWindowsWithoutReportBatchItemFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, windowed(time.Minute), func(o *shardtest.Options) { o.WithoutReportBatchItemFailures = true })
		s.put("s", "a")
		s.drain(failing(func(n int, _ event) (string, error) {
			return []string{"", report("a"), `{"state":{}}`}[min(n, 3)-1], nil
		}))
		if diff := cmp.Diff([]string{"a", "a", "a", ""}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestStateTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		s := newStream(t, windowed(time.Minute), func(o *shardtest.Options) { o.BatchSize = 1 })
		s.put("s", "a b c")
		s.closeShard("s")
		sized := func(n int) string { return `{"n":"` + strings.Repeat("x", n-8) + `"}` }
		s.drain(stateful(func(e event) string {
			switch strings.Join(e.Records, "") {
			case "a":
				return sized(limit) // not too large
			case "b":
				return sized(limit + 1)
			}
			return "{}"
		}))
		var got []string
		for _, d := range s.observed() {
			got = append(got, fmt.Sprint(d.Records, len(d.Window.State), d.Window.Final, d.Window.TerminatedEarly))
		}
		want := []string{"[a] 2 false false", "[b] 1048576 false false", "[] 1048577 true true", "[c] 2 true false"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// A state that grows does not make what is left of a batch too large for a payload.
func TestPayloadLimitWithState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, windowed(time.Minute))
		s.large("a", 10)
		for _, name := range []string{"b", "c", "d"} {
			s.large(name, lambdatest.MaxPayload/3-1000)
		}
		s.closeShard("s")
		state := `{"n":"` + strings.Repeat("x", 1<<20-8) + `"}`
		n, largest := 0, 0
		s.drain(lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
			largest = max(largest, len(payload))
			if n++; n == 1 {
				return []byte(`{"state":` + state + `,` + report("b")[1:]), nil
			}
			return []byte(`{"state":` + state + `}`), nil
		}))
		if diff := cmp.Diff([]string{"a b c", "b c", "d"}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if largest > lambdatest.MaxPayload {
			t.Errorf("the largest payload has %d bytes, want at most %d", largest, lambdatest.MaxPayload)
		}
	})
}

// A window that was terminated early has no second final invocation unless more records come.
func TestNothingAfterAnEarlyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, windowed(time.Minute))
		s.put("s", "a")
		s.drain(failing(func(n int, _ event) (string, error) {
			if n == 1 {
				return `{"state":{"n":"` + strings.Repeat("x", 1<<20) + `"}}`, nil
			}
			return `{"state":{}}`, nil
		}))
		if diff := cmp.Diff([]string{"a", ""}, s.batches()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestWindowEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, windowed(5*time.Minute))
		time.Sleep(7 * time.Minute)
		s.put("s", "a")
		s.closeShard("s")
		var got string
		s.drain(lambdatest.HandlerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
			got = string(payload)
			return []byte(`{"state":{}}`), nil
		}))
		want := `{"Records":["a"],"window":{"start":"2000-01-01T00:05:00Z","end":"2000-01-01T00:10:00Z"},"state":{},` +
			`"shardId":"s","eventSourceARN":"arn:letters","isFinalInvokeForWindow":true,"isWindowTerminatedEarly":false}`
		if got != want {
			t.Errorf("payload is\n%s, want\n%s", got, want)
		}
	})
}

func TestDiscardedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, windowed(time.Minute), func(o *shardtest.Options) { o.MaximumRetryAttempts = 0 })
		start := time.Now().UTC()
		s.put("s", "a")
		s.drain(failing(func(n int, e event) (string, error) {
			if e.IsFinalInvokeForWindow {
				return "", errNo
			}
			return `{"state":` + collected(e.State, e.Records...) + `}`, nil
		}))
		want := []shardtest.Discarded{{
			Shard: "s", Reason: shardtest.RetryAttemptsExhausted, Attempts: 1, At: start.Add(180 * time.Second),
			Window: &shardtest.Window{Start: start, End: start.Add(time.Minute), State: `{"names":"a"}`, Final: true},
		}}
		if diff := cmp.Diff(want, s.Discarded()); diff != "" {
			t.Errorf("discarded (-want +got):\n%s", diff)
		}
	})
}
