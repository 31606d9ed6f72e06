package bank

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestFakeProvider(t *testing.T) {
	for _, test := range []struct {
		card    string
		want    error
		message string
	}{
		{card: "card-1"},
		{card: CardDeclined, want: ErrDeclined},
		{card: CardKill(time.Now())}, // its time is over
		{card: cardKill + "noon", message: "want milliseconds"},
	} {
		var logged bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
		receipt, err := FakeProvider{}.Charge(t.Context(), Charge{Key: "k", Card: test.card, Amount: 1250, Currency: "EUR"})
		slog.SetDefault(before)
		switch {
		case test.message != "":
			if err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("%s: error is %v, want one with %q", test.card, err, test.message)
			}
		case !errors.Is(err, test.want):
			t.Errorf("%s: error is %v, want %v", test.card, err, test.want)
		}
		charged := strings.Contains(logged.String(), "msg=charged card="+test.card+" amount=1250 currency=EUR key=k\n")
		if ok := err == nil; charged != ok || strings.HasPrefix(receipt, "receipt-") != ok {
			t.Errorf("%s: error is %v, receipt %q, and the log says %q", test.card, err, receipt, logged.String())
		}
	}
}

// TestCardKill runs this test once more in a process that the card kills.
func TestCardKill(t *testing.T) {
	const dies = "ONCEKIT_TEST_BANK_DIES"
	if os.Getenv(dies) != "" {
		_, err := FakeProvider{}.Charge(t.Context(), Charge{Card: CardKill(time.Now().Add(time.Hour))})
		t.Fatalf("the process lives, error %v", err)
	}
	command := exec.Command(os.Args[0], "-test.run=^TestCardKill$")
	command.Env = append(os.Environ(), dies+"=1")
	out, err := command.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || len(out) > 0 {
		t.Errorf("error is %v, want exit code 1 and no output:\n%s", err, out)
	}
}
