package ledger

import (
	"testing"

	"github.com/oncekit/oncekit/batch"
)

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		transfer Transfer
		good     bool
	}{
		{Transfer{ID: "1", From: "A", To: "B", Amount: 1}, true},
		{Transfer{ID: "1", From: "A", To: "B"}, false},
		{Transfer{ID: "1", From: "A", To: "B", Amount: -1}, false},
		{Transfer{ID: "1", From: "A", To: "A", Amount: 1}, false},
		{Transfer{ID: "1", From: "A", Amount: 1}, false},
		{Transfer{ID: "1", To: "A", Amount: 1}, false},
	} {
		if err := test.transfer.check(); (err == nil) != test.good || !test.good && !batch.IsPermanent(err) {
			t.Errorf("check of %+v is %v, want it to be good: %t, and permanent otherwise", test.transfer, err, test.good)
		}
	}
}
