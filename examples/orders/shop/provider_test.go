package shop

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFakeProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for _, test := range []struct {
			card    string
			want    error
			message string
			takes   time.Duration
		}{
			{card: "card_of_ada"},
			{card: CardDeclined, want: ErrDeclined},
			{card: CardBankDown(start.Add(time.Hour)), want: ErrBankDown, takes: time.Hour},
			{card: CardBankDown(start.Add(time.Hour))}, // the hour is over
			{card: cardBankDown + "noon", message: "want milliseconds"},
		} {
			var logged bytes.Buffer
			provider := FakeProvider{slog.New(slog.NewTextHandler(&logged, nil))}
			began := time.Now()
			err := provider.Charge(t.Context(), Order{ID: "order-1", Card: test.card})
			switch {
			case test.message != "":
				if err == nil || !strings.Contains(err.Error(), test.message) {
					t.Errorf("%s: error is %v, want one with %q", test.card, err, test.message)
				}
			case !errors.Is(err, test.want):
				t.Errorf("%s: error is %v, want %v", test.card, err, test.want)
			}
			if charged := strings.Contains(logged.String(), "charged order=order-1"); charged != (err == nil) {
				t.Errorf("%s: error is %v, and the log says %q", test.card, err, logged.String())
			}
			if took := time.Since(began); took != test.takes {
				t.Errorf("%s: it took %v, want %v", test.card, took, test.takes)
			}
		}
	})
}
