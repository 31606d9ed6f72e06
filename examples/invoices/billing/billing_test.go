package billing

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFakeSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for _, test := range []struct {
			customer string
			want     error
			message  string
			takes    time.Duration
		}{
			{customer: "ada"},
			{customer: CustomerDown(start.Add(time.Hour)), want: ErrDown, takes: time.Hour},
			{customer: CustomerDown(start.Add(time.Hour))}, // the hour is over
			{customer: customerDown + "noon", message: "want milliseconds"},
		} {
			var logged bytes.Buffer
			system := FakeSystem{slog.New(slog.NewTextHandler(&logged, nil))}
			began := time.Now()
			err := system.Invoice(t.Context(), Order{ID: "order-1", Customer: test.customer})
			switch {
			case test.message != "":
				if err == nil || !strings.Contains(err.Error(), test.message) {
					t.Errorf("%s: error is %v, want one with %q", test.customer, err, test.message)
				}
			case !errors.Is(err, test.want):
				t.Errorf("%s: error is %v, want %v", test.customer, err, test.want)
			}
			if invoiced := strings.Contains(logged.String(), "invoiced order=order-1"); invoiced != (err == nil) {
				t.Errorf("%s: error is %v, and the log says %q", test.customer, err, logged.String())
			}
			if took := time.Since(began); took != test.takes {
				t.Errorf("%s: it took %v, want %v", test.customer, took, test.takes)
			}
		}
	})
}
