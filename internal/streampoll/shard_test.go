package streampoll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// memoryShard has n records with the sequence numbers 1 to n, and fails a read after a sequence number that is not one.
func memoryShard(n int) Shard {
	return Shard{ID: "shard", Read: func(_ context.Context, after string, limit int) ([]Record, error) {
		first := 1
		if after != "" {
			at, err := strconv.Atoi(after)
			if err != nil {
				return nil, err
			}
			first = at + 1
		}
		var records []Record
		for i := first; i <= n && len(records) < limit; i++ {
			number := strconv.Itoa(i)
			records = append(records, Record{SequenceNumber: number, JSON: json.RawMessage(number)})
		}
		return records, nil
	}}
}

// script is a handler that answers as written and keeps its payloads. The last answer is for all that follows.
type script struct {
	answers  []string // "error" is an error
	payloads []string
	kept     [][]byte
}

func (s *script) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if _, ok := ctx.Deadline(); !ok {
		return nil, errors.New("no deadline")
	}
	answer := s.answers[min(len(s.payloads), len(s.answers)-1)]
	s.payloads = append(s.payloads, string(payload))
	s.kept = append(s.kept, payload)
	if answer == "error" {
		return nil, errors.New("function error")
	}
	return []byte(answer), nil
}

// failed is the answer that reports these identifiers.
func failed(identifiers ...string) string {
	items := make([]string, len(identifiers))
	for i, id := range identifiers {
		items[i] = fmt.Sprintf(`{"itemIdentifier":%q}`, id)
	}
	return `{"batchItemFailures":[` + strings.Join(items, ",") + `]}`
}

func TestPoll(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []string
		want    []string // payloads
		err     string
	}{
		{
			name:    "all done",
			answers: []string{failed()},
			want:    []string{"1,2,3", "4,5"},
		},
		{
			name:    "the lowest of what is reported",
			answers: []string{failed("3", "2"), failed()},
			want:    []string{"1,2,3", "2,3,4", "5"},
		},
		{
			name:    "in order",
			answers: []string{failed("2", "3"), failed()},
			want:    []string{"1,2,3", "2,3,4", "5"},
		},
		{
			name:    "error",
			answers: []string{"error", failed()},
			want:    []string{"1,2,3", "1,2,3", "4,5"},
		},
		{
			name:    "empty identifier",
			answers: []string{failed(""), failed()},
			want:    []string{"1,2,3", "1,2,3", "4,5"},
		},
		{
			name:    "attempts begin again with every step",
			answers: slices.Concat(times("error", 9), []string{failed("2")}, times("error", 9), []string{failed()}),
			want:    slices.Concat(times("1,2,3", 10), times("2,3,4", 10), []string{"5"}),
		},
		{
			name:    "stuck with an error",
			answers: []string{failed("3"), "error"},
			want:    append([]string{"1,2,3"}, times("3,4,5", 10)...),
			err:     "streampoll: shard is stuck at 3 after 10 attempts: function error",
		},
		{
			name:    "stuck with an answer",
			answers: []string{failed("1")},
			want:    times("1,2,3", 10),
			err:     `streampoll: shard is stuck at 1 after 10 attempts: the answer was {"batchItemFailures":[{"itemIdentifier":"1"}]}`,
		},
		{
			name:    "unknown identifier",
			answers: []string{failed("3", "4")},
			want:    []string{"1,2,3"},
			err:     `"4" is no sequence number of the batch`,
		},
		{
			name:    "misspelt",
			answers: []string{`{"batchItemsFailures":[{"itemIdentifier":"1"}]}`},
			want:    []string{"1,2,3"},
			err:     "there is no batchItemFailures in it",
		},
		{
			name:    "list of another case",
			answers: []string{`{"BatchItemFailures":[]}`},
			want:    []string{"1,2,3"},
			err:     "there is no batchItemFailures in it",
		},
		{
			name:    "null list",
			answers: []string{`{"batchItemFailures":null}`},
			want:    []string{"1,2,3"},
			err:     "there is no batchItemFailures in it",
		},
		{
			name:    "no list",
			answers: []string{`{"batchItemFailures":{}}`},
			want:    []string{"1,2,3"},
			err:     "cannot unmarshal object",
		},
		{
			name:    "identifier of another case reports the whole batch",
			answers: []string{`{"batchItemFailures":[{"ItemIdentifier":"2"}],"other":1}`, failed()},
			want:    []string{"1,2,3", "1,2,3", "4,5"},
		},
		{
			name:    "no JSON",
			answers: []string{`{`},
			want:    []string{"1,2,3"},
			err:     `streampoll: answer "{" for shard: unexpected end`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &script{answers: test.answers}
			invocations, err := memoryShard(5).Poll(t.Context(), h, 3)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error is %v; want %q", err, test.err)
			}
			var got []string
			for _, p := range h.payloads {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(p, `{"Records":[`), `]}`))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("records of the events (-want +got):\n%s", diff)
			}
			if invocations != len(test.want) {
				t.Errorf("Poll returned %d invocations, want %d", invocations, len(test.want))
			}
			for _, payload := range h.kept {
				if strings.Trim(string(payload), "\x00") != "" {
					t.Errorf("payload %q is there after the invocation; want it overwritten", payload)
				}
			}
		})
	}
}

func TestPollOfAShardThatCannotBeRead(t *testing.T) {
	gone := errors.New("gone")
	s := Shard{ID: "shard", Read: func(context.Context, string, int) ([]Record, error) { return nil, gone }}
	if _, err := s.Poll(t.Context(), &script{}, 1); !errors.Is(err, gone) {
		t.Errorf("error is %v; want %v", err, gone)
	}
}

// TestPollOfAShardThatRepeatsItself would not end if Poll took the last record again for the next one.
func TestPollOfAShardThatRepeatsItself(t *testing.T) {
	s := Shard{ID: "shard", Read: func(context.Context, string, int) ([]Record, error) {
		return []Record{{SequenceNumber: "1", JSON: json.RawMessage("1")}}, nil
	}}
	_, err := s.Poll(t.Context(), &script{answers: []string{failed()}}, 1)
	if want := "streampoll: shard begins after 1 with that record"; err == nil || err.Error() != want {
		t.Errorf("error is %v; want %s", err, want)
	}
}

func TestPollEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := &script{answers: []string{"error"}}
	if _, err := memoryShard(1).Poll(ctx, h, 1); !errors.Is(err, context.Canceled) || len(h.payloads) != 1 {
		t.Errorf("error is %v after %d invocations; want %v after 1", err, len(h.payloads), context.Canceled)
	}
}

// times returns n times s.
func times(s string, n int) []string { return slices.Repeat([]string{s}, n) }
