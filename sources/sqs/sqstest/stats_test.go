package sqstest_test

import (
	"reflect"
	"testing"

	"github.com/oncekit/oncekit/sources/sqs/sqstest"
)

func TestStatsString(t *testing.T) {
	ones, manies := sqstest.Stats{}, sqstest.Stats{}
	for i := range reflect.TypeFor[sqstest.Stats]().NumField() {
		reflect.ValueOf(&ones).Elem().Field(i).SetInt(1)
		reflect.ValueOf(&manies).Elem().Field(i).SetInt(int64(i + 2))
	}
	for _, test := range []struct {
		stats sqstest.Stats
		want  string
	}{
		{sqstest.Stats{}, "0 sent"},
		{sqstest.Stats{Sent: 3, Receives: 4, Invocations: 2, Deleted: 3}, "3 sent, 4 receives, 2 invocations, 3 deleted"},
		{sqstest.Stats{Delayed: 2}, "2 delayed"},
		{ones, "1 sent, 1 receive, 1 invocation, 1 deleted, 1 dead-lettered, 1 duplicate, 1 crash, 1 timeout, 1 error, " +
			"1 visible, 1 in flight, 1 delayed"},
		{manies, "2 sent, 3 receives, 4 invocations, 5 deleted, 6 dead-lettered, 7 duplicates, 8 crashes, 9 timeouts, " +
			"10 errors, 11 visible, 12 in flight, 13 delayed"},
	} {
		if got := test.stats.String(); got != test.want {
			t.Errorf("String is %q, want %q", got, test.want)
		}
	}
}
