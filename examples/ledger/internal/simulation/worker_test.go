package simulation

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type counted struct{ arrived int }

func (c *counted) Do(*http.Request) (*http.Response, error) {
	c.arrived++
	return &http.Response{Body: io.NopCloser(strings.NewReader(""))}, nil
}

// TestMortal makes three requests, and dies in the second one.
func TestMortal(t *testing.T) {
	for _, test := range []struct {
		death         death
		arrived, died int
	}{
		{death{}, 3, 0},
		{death{Request: 2}, 2, 1},
		{death{Request: 2, After: true}, 3, 1},
		{death{Request: 4}, 3, 0},
	} {
		next, died := &counted{}, 0
		m := &mortal{HTTPClient: next, death: test.death, die: func() { died++ }}
		for i := range 3 {
			response, err := m.Do(nil)
			if fatal := i+1 == test.death.Request; fatal != errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("%+v: error of request %d is %v", test.death, i+1, err)
			}
			if err == nil {
				_ = response.Body.Close()
			}
		}
		if next.arrived != test.arrived || died != test.died {
			t.Errorf("%+v: %d requests arrived, died %d times; want %d, %d", test.death, next.arrived, died, test.arrived, test.died)
		}
	}
}

// TestBalances changes each figure of books that balance.
func TestBalances(t *testing.T) {
	good := Result{Transfers: 3, Debits: 3, Credits: 3, Before: 10, After: 10}
	if !good.Balances() {
		t.Error("good books do not balance")
	}
	for name, change := range map[string]func(*Result){
		"debits": func(r *Result) { r.Debits++ }, "credits": func(r *Result) { r.Credits-- },
		"wrong": func(r *Result) { r.Wrong++ }, "after": func(r *Result) { r.After-- },
	} {
		r := good
		if change(&r); r.Balances() {
			t.Errorf("books with other %s balance", name)
		}
	}
}
