package idempotency_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// What disables a guard, and that it says so.
func TestDisabledBy(t *testing.T) {
	const want = ", want true or false, 1 or 0"
	for _, test := range []struct {
		name, own, powertools string
		option                bool
		by                    string // empty: it is not disabled
		err                   string
	}{
		{"nothing", "", "", false, "", ""},
		{"option", "", "", true, "Options.Disabled", ""},
		{"variable", "true", "", false, "ONCEKIT_IDEMPOTENCY_DISABLED", ""},
		{"Powertools' variable", "", "1", false, "POWERTOOLS_IDEMPOTENCY_DISABLED", ""},
		{"both", "T", "TRUE", false, "ONCEKIT_IDEMPOTENCY_DISABLED", ""},
		{"one false, one true", "false", "t", false, "POWERTOOLS_IDEMPOTENCY_DISABLED", ""},
		{"option and false", "0", "F", true, "Options.Disabled", ""},
		{"false", "false", "0", false, "", ""},
		{"unclear", "yes", "", false, "", `idempotency: the environment variable ONCEKIT_IDEMPOTENCY_DISABLED is "yes"` + want},
		{"unclear beside true", "1", " true", false, "",
			`idempotency: the environment variable POWERTOOLS_IDEMPOTENCY_DISABLED is " true"` + want},
		{"unclear twice", "on", "2", true, "", `idempotency: the environment variable ONCEKIT_IDEMPOTENCY_DISABLED is "on"` + want +
			"\n" + `idempotency: the environment variable POWERTOOLS_IDEMPOTENCY_DISABLED is "2"` + want},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(idempotency.DisabledVariable, test.own)
			t.Setenv(idempotency.PowertoolsDisabledVariable, test.powertools)
			idempotency.ForgetDisabledWarning()
			var log bytes.Buffer
			store := &faultStore{}
			g, err := idempotency.New("orders", store, logTo(&log), func(o *idempotency.Options) { o.Disabled = test.option })
			if diff := cmp.Diff(test.err, errorText(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			wantLog := ""
			if test.by != "" {
				wantLog = `level=WARN msg="idempotency is disabled: all work runs unprotected" by=` + test.by + "\n"
			}
			if diff := cmp.Diff(wantLog, log.String()); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if got, want := g.Options().Disabled, test.by != ""; got != want {
				t.Errorf("Options().Disabled is %t, want %t", got, want)
			}
			if got := g.Options().MissingKey; (got == idempotency.MissingKeyRunsUnprotected) != (test.by != "") {
				t.Errorf("Options().MissingKey is %d, want that sources let work without a key run where the guard is disabled", got)
			}
			_, err = idempotency.Do(t.Context(), g, "k", returns(1, nil))
			wantErr(t, err)
			if got, want := len(store.calls) == 0, test.by != ""; got != want {
				t.Errorf("store calls are %q, want none only where the guard is disabled, which is %t", store.calls, want)
			}
		})
	}
}

// Under a disabled guard work runs as often as it is asked for, alone and in groups, with a key and without, and knows that
// it has no claim. The warning comes once a process.
func TestDisabled(t *testing.T) {
	idempotency.ForgetDisabledWarning()
	var r recorder
	var log bytes.Buffer
	store := &faultStore{}
	disabled := func(o *idempotency.Options) { o.Disabled, o.LocalCache, o.Hooks = true, 10, []idempotency.Hook{&r} }
	for range 2 {
		g := newGuard(t, store, logTo(&log), disabled)
		for _, key := range []string{"k", "k", ""} {
			ran := false
			got, err := idempotency.Do(t.Context(), g, key, func(ctx context.Context) (int, error) {
				if info, ok := idempotency.FromContext(ctx); ok {
					t.Errorf("FromContext is %+v, want none", info)
				}
				if _, err := idempotency.TransactionFrom(ctx); err == nil {
					t.Error("TransactionFrom returns a transaction that nobody completes, want an error")
				}
				ran = true
				return 1, nil
			})
			if want := (idempotency.Result[int]{Value: 1}); err != nil || got != want || !ran {
				t.Errorf("Do of %q returns %+v, %v, ran: %t; want %+v", key, got, err, ran, want)
			}
		}
		wantSettled(t, g, idempotency.Request{Key: "k"}, idempotency.Request{Key: "k"}, idempotency.Request{})
		if diff := cmp.Diff(strings.Repeat(", unprotected", 6)[2:], r.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	if len(store.calls) > 0 {
		t.Errorf("store calls are %q, want none", store.calls)
	}
	if got := strings.Count(log.String(), "\n"); got != 1 {
		t.Errorf("log has %d lines, want 1:\n%s", got, log.String())
	}
}

// wantSettled claims and completes the work of the requests in a group, which must be unprotected.
func wantSettled(t *testing.T, g *idempotency.Guard, requests ...idempotency.Request) {
	t.Helper()
	claims, errs := g.ClaimAll(t.Context(), requests)
	endings := make([]idempotency.Ending, len(claims))
	for i, c := range claims {
		if errs[i] != nil || c.Replayed() || !c.Deadline().IsZero() {
			t.Fatalf("claim %d: error is %v, want unprotected work", i, errs[i])
		}
		endings[i] = idempotency.EndComplete
	}
	for i, err := range g.SettleAll(t.Context(), claims, endings) {
		if err != nil {
			t.Errorf("completion %d: %v", i, err)
		}
	}
}

// There is nothing to gain from groups where no store is called.
func TestDisabledGuardWantsNoGroups(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		g := newGuard(t, &bulkStore{}, func(o *idempotency.Options) { o.Disabled = disabled })
		if sizes, ok := g.BulkSizes(); ok == disabled {
			t.Errorf("disabled: %t; BulkSizes is %+v, %t", disabled, sizes, ok)
		}
	}
}

// A wrong variable is told beside what else is wrong.
func TestDisabledVariableAmongErrors(t *testing.T) {
	t.Setenv(idempotency.DisabledVariable, "maybe")
	_, err := idempotency.New("", nil)
	for _, want := range []string{"namespace", "store is nil", "ONCEKIT_IDEMPOTENCY_DISABLED"} {
		if !strings.Contains(errorText(err), want) {
			t.Errorf("error is %q, want %q in it", errorText(err), want)
		}
	}
}
