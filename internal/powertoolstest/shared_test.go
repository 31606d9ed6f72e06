package powertoolstest_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/dynamostore"
	"github.com/oncekit/oncekit/internal/powertoolstest"
)

const inProgress = "IdempotencyAlreadyInProgressError"

func nativeData(o *dynamostore.Options) { o.NativeData = true }

func TestInProgressInGo(t *testing.T) {
	s := newShared(t, nativeData)
	c := claim(t, s.guard(t), payload)
	before := s.row(t, payload)
	threw(t, s.Call(t, s.typeScript(), payload, receipt), inProgress)
	if diff := cmp.Diff(before, s.row(t, payload), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("the refused call has changed the item (-want +got):\n%s", diff)
	}
	if err := c.Complete(t.Context(), []byte(receipt)); err != nil {
		t.Fatal(err)
	}
	replayed(t, "TypeScript", s.Call(t, s.typeScript(), payload, `"again"`), receipt)
}

func TestInProgressInTypeScript(t *testing.T) {
	s := newShared(t)
	running := s.Begin(t, s.typeScript(), payload)
	if !running.Started() {
		t.Fatalf("the function did not run: %+v", running.Outcome(t))
	}
	o := do(t, s.guard(t), payload, `"again"`)
	refused(t, o, idempotency.ErrInProgress)
	if held, ok := errors.AsType[*idempotency.InProgressError](o.Err); !ok ||
		strconv.FormatInt(held.Lease.UnixMilli(), 10) != s.row(t, payload).text(lease) {
		t.Errorf("the error is %v, want one with the lease of %v", o.Err, s.row(t, payload))
	}
	running.Return(t, receipt)
	ran(t, "TypeScript", running.Outcome(t), receipt)
	replayed(t, "Go", do(t, s.guard(t), payload, `"again"`), receipt)
}

func TestTakeoverByTypeScript(t *testing.T) {
	s := newShared(t)
	guard := s.guard(t)
	c := claim(t, guard, payload)
	s.endLease(t, payload)
	running := s.Begin(t, s.typeScript(), payload)
	if !running.Started() {
		t.Fatalf("the function did not run: %+v", running.Outcome(t))
	}
	// The put of Powertools has removed the owner, so that the first one is too late for all.
	if err := c.Complete(t.Context(), []byte(`"late"`)); !errors.Is(err, idempotency.ErrClaimLost) {
		t.Errorf("the late completion returned %v, want ErrClaimLost", err)
	}
	if err := c.Release(t.Context()); !errors.Is(err, idempotency.ErrClaimLost) {
		t.Errorf("the late release returned %v, want ErrClaimLost", err)
	}
	refused(t, do(t, guard, payload, `"again"`), idempotency.ErrInProgress)
	running.Return(t, receipt)
	ran(t, "TypeScript", running.Outcome(t), receipt)
	replayed(t, "Go", do(t, guard, payload, `"again"`), receipt)
}

func TestTakeoverByGo(t *testing.T) {
	s := newShared(t)
	running := s.Begin(t, s.typeScript(), payload)
	end, err := strconv.ParseInt(s.row(t, payload).text(lease), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	// Go waits for its Skew, which Powertools does not know, and not for a millisecond more.
	at := func(milliseconds int64) func(*idempotency.Options) {
		return func(o *idempotency.Options) {
			o.Clock = func() time.Time { return time.UnixMilli(end + milliseconds) }
		}
	}
	refused(t, do(t, s.guard(t, at(1000)), payload, receipt), idempotency.ErrInProgress)
	ran(t, "Go", do(t, s.guard(t, at(1001)), payload, receipt), receipt)
	replayed(t, "Go", do(t, s.guard(t), payload, `"again"`), receipt)
	running.Throw(t, "the end of the test")
	running.Outcome(t)
}

// TestClaimWithoutLease: Powertools writes none where it was not given the Lambda context.
func TestClaimWithoutLease(t *testing.T) {
	s := newShared(t)
	noContext := s.typeScript(func(f *powertoolstest.Function) { f.Remaining = 0 })
	running := s.Begin(t, noContext, payload)
	if got, ok := s.row(t, payload)[lease]; ok {
		t.Fatalf("the claim has a lease, %v; want none", got)
	}
	guard := s.guard(t)
	refused(t, do(t, guard, payload, receipt), idempotency.ErrInProgress)
	s.expire(t, payload)
	ran(t, "Go", do(t, guard, payload, receipt), receipt)
	running.Throw(t, "the end of the test")
	running.Outcome(t)
}

// TestReleasedClaims: what Go leaves of a failed attempt is free to TypeScript, whether or not it counts attempts.
func TestReleasedClaims(t *testing.T) {
	for name, counted := range map[string]bool{"deleted": false, "kept for its count": true} {
		t.Run(name, func(t *testing.T) {
			s := newShared(t)
			c := claim(t, s.guard(t, func(o *idempotency.Options) { o.CountAttempts = counted }), payload)
			if err := c.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if kept := s.row(t, payload) != nil; kept != counted {
				t.Fatalf("the item is kept: %v, want %v", kept, counted)
			}
			ran(t, "TypeScript", s.Call(t, s.typeScript(), payload, receipt), receipt)
		})
	}
}

func TestFailureInTypeScript(t *testing.T) {
	s := newShared(t)
	running := s.Begin(t, s.typeScript(), payload)
	running.Throw(t, "no stock")
	if o := running.Outcome(t); !powertoolstest.Threw(o.Err, "Error") {
		t.Fatalf("the function returned %+v, want its error", o)
	}
	ran(t, "Go", do(t, s.guard(t), payload, receipt), receipt)
}

func TestExpired(t *testing.T) {
	s := newShared(t, nativeData)
	guard := s.guard(t)
	ran(t, "TypeScript", s.Call(t, s.typeScript(), payload, `1`), `1`)
	replayed(t, "Go", do(t, guard, payload, `2`), `1`)
	s.expire(t, payload)
	ran(t, "Go", do(t, guard, payload, `3`), `3`)
	replayed(t, "TypeScript", s.Call(t, s.typeScript(), payload, `4`), `3`)
	s.expire(t, payload)
	ran(t, "TypeScript", s.Call(t, s.typeScript(), payload, `5`), `5`)
}

// results are what functions return, in JSON whose members are sorted.
var results = []string{
	`{"lines":[1,2.5,"x",null,true,[]],"receipt":{"id":"r-1","note":""}}`, `[]`, `{}`, `[{"a":[{}]}]`, `"text"`, `"größe 😀"`,
	`""`, `0`, `-1.5`, `9007199254740991`, `true`, `false`, `null`,
}

func TestResultsOfTypeScript(t *testing.T) {
	for name, options := range map[string]func(*dynamostore.Options){"text": nil, "native": nativeData} {
		t.Run(name, func(t *testing.T) {
			s := newShared(t, options)
			guard := s.guard(t)
			for i, result := range results {
				payload := `{"order":` + strconv.Itoa(i+1) + `}`
				ran(t, "TypeScript", s.Call(t, s.typeScript(), payload, result), result)
				replayed(t, "Go", do(t, guard, payload, `"again"`), result)
			}
			// A string that is JSON looks like the JSON that Python, Java and Go by default keep in a string.
			const text = `{"order":"text"}`
			ran(t, "TypeScript", s.Call(t, s.typeScript(), text, `"{\"a\":1}"`), `"{\"a\":1}"`)
			replayed(t, "Go", do(t, guard, text, `"again"`), `{"a":1}`)
			// A function that returns nothing leaves nothing to replay.
			s.Call(t, s.typeScript(), payload, "")
			refused(t, do(t, guard, payload, `"again"`), idempotency.ErrResultNotStored)
		})
	}
}

func TestResultsOfGo(t *testing.T) {
	for name, test := range map[string]struct {
		options func(*dynamostore.Options)
		want    func(result string) string
	}{
		"native": {nativeData, func(result string) string { return result }},
		// TypeScript gets the text of the JSON, and has to parse it in its responseHook.
		"text": {nil, func(result string) string {
			quoted, _ := json.Marshal(result)
			return string(quoted)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShared(t, test.options)
			guard := s.guard(t)
			for i, result := range results {
				payload := `{"order":` + strconv.Itoa(i+1) + `}`
				ran(t, "Go", do(t, guard, payload, result), result)
				o := s.Call(t, s.typeScript(), payload, `"again"`)
				if sortJSON(t, o.Result) != test.want(result) || o.Ran || o.Err != nil {
					t.Errorf("%s is replayed in TypeScript as %+v, want %s", result, o, test.want(result))
				}
			}
		})
	}
}

// sortJSON returns the value with the members of its objects sorted.
func sortJSON(t *testing.T, value string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		t.Fatalf("%q: %v", value, err)
	}
	if f, ok := v.(float64); ok && f > 1e15 {
		return value // which would come out with an exponent
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}

// TestSortKey: with a sort key, the partition key's value is by default the same to both, made of the function's name.
func TestSortKey(t *testing.T) {
	s := newShared(t, nativeData, func(o *dynamostore.Options) { o.SortKeyAttribute = "sk" })
	typeScript := s.typeScript(func(f *powertoolstest.Function) { f.Layer.SortKey = "sk" })
	guard := s.guard(t)
	ran(t, "Go", do(t, guard, payload, `1`), `1`)
	replayed(t, "TypeScript", s.Call(t, typeScript, payload, `2`), `1`)
	ran(t, "TypeScript", s.Call(t, typeScript, `{"order":"o-2"}`, `3`), `3`)
	replayed(t, "Go", do(t, guard, `{"order":"o-2"}`, `4`), `3`)
}
