package dynamostore

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/idempotency"
)

// TestStatements holds the statements. What the server of the tests takes for well formed is not all that DynamoDB does, and
// the other way round: these have nothing that the reference does not show.
func TestStatements(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	claim := idempotency.ClaimRequest{Key: "k", Owner: "me", Now: at, Lease: at.Add(time.Minute), Expiry: at.Add(time.Hour)}
	counted := claim
	counted.CountAttempts, counted.Fingerprint = true, "f"
	held := seen{Entry: idempotency.Entry{Status: idempotency.InProgress, Owner: "other", Lease: at.Add(-time.Minute), Expiry: at.Add(time.Hour)}}
	done := seen{Entry: idempotency.Entry{Status: idempotency.Completed, Owner: "other", Expiry: at.Add(-time.Hour), Data: []byte("1")}}
	released := seen{counted: true, Entry: idempotency.Entry{
		Status: idempotency.InProgress, Lease: time.UnixMilli(0), Expiry: at.Add(time.Hour), Attempts: 2}}
	foreign := seen{Entry: idempotency.Entry{Status: idempotency.InProgress, Expiry: at.Add(-time.Hour)}}
	full := done
	full.Fingerprint = "g"

	options, err := resolve([]func(*Options){func(o *Options) { o.OwnerAttribute = `o"w'n` }})
	if err != nil {
		t.Fatal(err)
	}
	p := newPartiQL("my-table", &options)
	takeover := func(r idempotency.ClaimRequest, e seen) *string {
		text, parameters := p.takeover(new(parameters), &r, &e)
		if text != nil && strings.Count(*text, "?") != len(parameters) {
			t.Errorf("%d parameters for %s", len(parameters), *text)
		}
		return text
	}
	for _, test := range []struct {
		name string
		got  *string
		want string
	}{
		{"insert", p.insert[0][0], `INSERT INTO "my-table" VALUE {'id':?,'status':'INPROGRESS','o"w''n':?,'in_progress_expiration':?,'expiration':?}`},
		{"insert counted", p.insert[1][1], `INSERT INTO "my-table" VALUE {'id':?,'status':'INPROGRESS','o"w''n':?,'in_progress_expiration':?,'expiration':?,'validation':?,'attempts':1}`},
		{"mark", p.mark[0][0], `INSERT INTO "my-table" VALUE {'id':?,'status':'COMPLETED','o"w''n':?,'expiration':?}`},
		{"mark with all", p.mark[1][1], `INSERT INTO "my-table" VALUE {'id':?,'status':'COMPLETED','o"w''n':?,'expiration':?,'validation':?,'data':?}`},
		{"complete", p.complete[0][0], `UPDATE "my-table" SET "status"='COMPLETED',"expiration"=? REMOVE "in_progress_expiration" WHERE "id"=? AND "o""w'n"=? AND "status"='INPROGRESS' AND "expiration">=? AND "data" IS MISSING AND "attempts" IS MISSING`},
		{"complete counted", p.complete[1][1], `UPDATE "my-table" SET "status"='COMPLETED',"expiration"=?,"data"=?,"in_progress_expiration"=0 REMOVE "attempts" WHERE "id"=? AND "o""w'n"=? AND "status"='INPROGRESS' AND "expiration">=?`},
		{"release", p.release, `DELETE FROM "my-table" WHERE "id"=? AND "o""w'n"=? AND "status"='INPROGRESS'`},
		{"renew", p.renew, `UPDATE "my-table" SET "o""w'n"=?,"in_progress_expiration"=?,"expiration"=? WHERE "id"=? AND "o""w'n"=? AND "status"='INPROGRESS' AND "expiration">=?`},
		{"take over a claim", takeover(claim, held), `UPDATE "my-table" SET "status"='INPROGRESS',"o""w'n"=?,"in_progress_expiration"=?,"expiration"=? WHERE "id"=? AND "status"='INPROGRESS' AND "o""w'n"=? AND "in_progress_expiration"=? AND "expiration"=?`},
		{"take over a completion", takeover(claim, done), `UPDATE "my-table" SET "status"='INPROGRESS',"o""w'n"=?,"in_progress_expiration"=?,"expiration"=? REMOVE "data" WHERE "id"=? AND "status"='COMPLETED' AND "o""w'n"=? AND "in_progress_expiration" IS MISSING AND "expiration"=?`},
		{"take what was released", takeover(counted, released), `UPDATE "my-table" SET "status"='INPROGRESS',"o""w'n"=?,"in_progress_expiration"=?,"expiration"=?,"validation"=?,"attempts"=? WHERE "id"=? AND "status"='INPROGRESS' AND "o""w'n" IS MISSING AND "in_progress_expiration"=? AND "expiration"=? AND "attempts"=?`},
		{"take what was released, not counted", takeover(claim, released), `UPDATE "my-table" SET "status"='INPROGRESS',"o""w'n"=?,"in_progress_expiration"=?,"expiration"=? REMOVE "attempts" WHERE "id"=? AND "status"='INPROGRESS' AND "o""w'n" IS MISSING AND "in_progress_expiration"=? AND "expiration"=? AND "attempts"=?`},
		{"take over another tool's", takeover(counted, foreign), `UPDATE "my-table" SET "status"='INPROGRESS',"o""w'n"=?,"in_progress_expiration"=?,"expiration"=?,"validation"=?,"attempts"=? WHERE "id"=? AND "status"='INPROGRESS' AND "o""w'n" IS MISSING AND "in_progress_expiration" IS MISSING AND "expiration"=? AND "attempts" IS MISSING`},
		{"more to remove than one", takeover(claim, full), ""},
	} {
		got := ""
		if test.got != nil {
			got = *test.got
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}

	// With a sort key, and the longest names that there are.
	long := func(o *Options) {
		o.SortKeyAttribute = "sk"
		for i, a := range o.attributes() {
			*a.name = strings.Repeat(`"`, 254) + string(rune('a'+i))
		}
	}
	if options, err = resolve([]func(*Options){long}); err != nil {
		t.Fatal(err)
	}
	p = newPartiQL(strings.Repeat("t", 255), &options)
	for _, text := range []*string{
		p.insert[1][1], p.complete[0][0], p.complete[1][1], p.renew, takeover(counted, released), takeover(claim, done),
		takeover(claim, released), takeover(counted, foreign),
	} {
		if len(*text) > 8192 {
			t.Errorf("a statement has %d characters; want at most 8192", len(*text))
		}
	}
}
