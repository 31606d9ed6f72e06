package dynamostore

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// partiQL has the texts of statements. Their parameters are, in this order, what is set, the key, what is compared.
//
// An UPDATE has one list of SET and one REMOVE with one attribute. That much every reading of the reference allows: its
// syntax repeats clauses, its page on batches has a list in SET, and none shows a list in REMOVE ("PartiQL update
// statements for DynamoDB" and "Running batch operations with PartiQL for DynamoDB", DynamoDB Developer Guide). What
// needs more is left to the single calls.
//
// A statement may have 8,192 characters (BatchStatementRequest, DynamoDB API Reference). The longest has 14 names and that
// of the table, which are 7,400 if all are 255 quotation marks.
type partiQL struct {
	options *Options
	table   string // quoted
	where   string // the condition on the key

	insert   [2][2]*string // [with fingerprint][counted]
	complete [2][2]*string // [with data][counted]
	release  *string
	renew    *string
	mark     [2][2]*string // [with fingerprint][with data]
}

// index returns the place of a choice in an array of two.
func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// quoted returns a name as PartiQL writes it. Every name is quoted: it may be a reserved word, as owner and status are.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal returns a string as PartiQL writes it.
func literal(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

func newPartiQL(table string, o *Options) partiQL {
	p := partiQL{options: o, table: quoted(table), where: " WHERE " + quoted(o.KeyAttribute) + "=?"}
	key := literal(o.KeyAttribute) + ":?"
	if o.SortKeyAttribute != "" {
		p.where += " AND " + quoted(o.SortKeyAttribute) + "=?"
		key += "," + literal(o.SortKeyAttribute) + ":?"
	}

	insert := "INSERT INTO " + p.table + " VALUE {" + key + "," + literal(o.StatusAttribute) + ":" +
		literal(inProgress.Value) + "," + literal(o.OwnerAttribute) + ":?," + literal(o.LeaseAttribute) + ":?," +
		literal(o.ExpiryAttribute) + ":?"
	for counted := range 2 {
		for fingerprint := range 2 {
			text := insert
			if fingerprint == 1 {
				text += "," + literal(o.FingerprintAttribute) + ":?"
			}
			if counted == 1 {
				text += "," + literal(o.AttemptsAttribute) + ":1"
			}
			p.insert[fingerprint][counted] = aws.String(text + "}")
		}
	}

	mark := "INSERT INTO " + p.table + " VALUE {" + key + "," + literal(o.StatusAttribute) + ":" +
		literal(completed.Value) + "," + literal(o.OwnerAttribute) + ":?," + literal(o.ExpiryAttribute) + ":?"
	for fingerprint := range 2 {
		for data := range 2 {
			text := mark
			if fingerprint == 1 {
				text += "," + literal(o.FingerprintAttribute) + ":?"
			}
			if data == 1 {
				text += "," + literal(o.DataAttribute) + ":?"
			}
			p.mark[fingerprint][data] = aws.String(text + "}")
		}
	}

	mine := " AND " + quoted(o.OwnerAttribute) + "=? AND " + quoted(o.StatusAttribute) + "=" + literal(inProgress.Value)
	live := mine + " AND " + quoted(o.ExpiryAttribute) + ">=?"
	for counted := range 2 {
		for data := range 2 {
			set := " SET " + quoted(o.StatusAttribute) + "=" + literal(completed.Value) + "," + quoted(o.ExpiryAttribute) + "=?"
			condition := live
			if data == 1 {
				set += "," + quoted(o.DataAttribute) + "=?"
			} else {
				condition += " AND " + quoted(o.DataAttribute) + " IS MISSING"
			}
			if counted == 1 {
				// A lease of 0 means nothing in a completion, and only one attribute can be removed.
				set += "," + quoted(o.LeaseAttribute) + "=0 REMOVE " + quoted(o.AttemptsAttribute)
			} else {
				set += " REMOVE " + quoted(o.LeaseAttribute)
				condition += " AND " + quoted(o.AttemptsAttribute) + " IS MISSING"
			}
			p.complete[data][counted] = aws.String("UPDATE " + p.table + set + p.where + condition)
		}
	}
	p.release = aws.String("DELETE FROM " + p.table + p.where + mine)
	p.renew = aws.String("UPDATE " + p.table + " SET " + quoted(o.OwnerAttribute) + "=?," + quoted(o.LeaseAttribute) +
		"=?," + quoted(o.ExpiryAttribute) + "=?" + p.where + live)
	return p
}

// takeover returns the statement that gives the item e to r, if the item is as it was seen. The text is nil if a
// statement cannot say it.
//
// An owner is unique, so what it wrote cannot have changed and changed back. An item without one can: its count is
// compared as well.
func (p *partiQL) takeover(
	v *parameters, r *idempotency.ClaimRequest, e *seen,
) (*string, []types.AttributeValue) {
	o := p.options
	var remove []string
	if e.Data != nil {
		remove = append(remove, o.DataAttribute)
	}
	if e.Fingerprint != "" && r.Fingerprint == "" {
		remove = append(remove, o.FingerprintAttribute)
	}
	if e.counted && !r.CountAttempts {
		remove = append(remove, o.AttemptsAttribute)
	}
	if len(remove) > 1 {
		return nil, nil
	}

	var text strings.Builder
	start := len(v.list)
	set := func(name string, value types.AttributeValue) {
		text.WriteString("," + quoted(name) + "=?")
		v.add(value)
	}
	text.WriteString("UPDATE " + p.table + " SET " + quoted(o.StatusAttribute) + "=" + literal(inProgress.Value))
	set(o.OwnerAttribute, v.text(r.Owner))
	set(o.LeaseAttribute, v.lease(o, r.Lease))
	set(o.ExpiryAttribute, v.expiry(r.Expiry))
	if r.Fingerprint != "" {
		set(o.FingerprintAttribute, v.text(r.Fingerprint))
	}
	if r.CountAttempts {
		set(o.AttemptsAttribute, number(int64(e.attemptsBefore(r)+1)))
	}
	for _, name := range remove {
		text.WriteString(" REMOVE " + quoted(name))
	}

	text.WriteString(p.where + " AND " + quoted(o.StatusAttribute) + "=" + literal(e.Status.String()))
	v.key(o, r.Key)
	where := func(name string, is bool, value types.AttributeValue) {
		text.WriteString(" AND " + quoted(name))
		if !is {
			text.WriteString(" IS MISSING")
			return
		}
		text.WriteString("=?")
		v.add(value)
	}
	where(o.OwnerAttribute, e.Owner != "", v.text(e.Owner))
	where(o.LeaseAttribute, !e.Lease.IsZero(), number(o.leaseUnits(e.Lease.UnixMilli())))
	where(o.ExpiryAttribute, !e.Expiry.IsZero(), seconds(e.Expiry))
	if e.Owner == "" {
		where(o.AttemptsAttribute, e.counted, number(int64(e.Attempts)))
	}
	return aws.String(text.String()), v.since(start)
}
