package dynamostore

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency"
)

// Conditions and updates, in placeholders: an attribute's own name may be a reserved word or hold dots and dashes.
const (
	isCompletedExpired = "#status = :completed AND #expiry < :now"
	isLeaseOver        = "#status = :inProgress AND #lease < :free"
	// Another tool's claim, which has no lease, is held until its expiry.
	isLeaselessExpired = "#status = :inProgress AND attribute_not_exists(#lease) AND #expiry < :now"

	claimCondition = "attribute_not_exists(#key) OR (" + isCompletedExpired + ") OR (" + isLeaseOver + ") OR (" +
		isLeaselessExpired + ")"

	// An update keeps the count of the item it updates, and the count of an expired claim must not live on. So a claim
	// that counts leaves expired claims alone, and a put that starts from 1 takes those. A completion has no count.
	countCondition = "attribute_not_exists(#key) OR (" + isCompletedExpired + ") OR (" + isLeaseOver +
		" AND #expiry >= :now)"
	freshCondition = "attribute_not_exists(#key) OR (" + isLeaseOver + " AND (attribute_not_exists(#expiry) OR " +
		"#expiry < :now)) OR (" + isLeaselessExpired + ")"

	claimSet         = "SET #status = :inProgress, #owner = :owner, #lease = :lease, #expiry = :expiry"
	countSet         = claimSet + ", #attempts = if_not_exists(#attempts, :zero) + :one"
	fingerprintSet   = ", #fingerprint = :fingerprint REMOVE #data"
	fingerprintUnset = " REMOVE #data, #fingerprint"

	mineCondition = "#owner = :owner AND #status = :inProgress"
	liveCondition = mineCondition + " AND #expiry >= :now"
)

// statement is an expression with the names it uses; DynamoDB refuses names that are not used. Nothing in it changes
// after New, so that calls share it.
type statement struct {
	condition *string
	update    *string
	names     map[string]string
}

type statements struct {
	claim, fresh                      statement
	updates                           map[updateClaim]statement
	complete, completeData            statement
	release, releaseKeep, releaseUndo statement
	renew                             statement
	mark                              [2][2]statement // [with fingerprint][with data]
}

// updateClaim is a kind of claim by UpdateItem.
type updateClaim struct{ counted, fingerprint bool }

func newStatements(o Options) statements {
	names := map[string]string{
		"#key": o.KeyAttribute, "#status": o.StatusAttribute, "#expiry": o.ExpiryAttribute, "#lease": o.LeaseAttribute,
		"#data": o.DataAttribute, "#fingerprint": o.FingerprintAttribute, "#owner": o.OwnerAttribute,
		"#attempts": o.AttemptsAttribute,
	}
	build := func(condition, update string) statement {
		s := statement{condition: aws.String(condition), names: make(map[string]string)}
		if update != "" {
			s.update = aws.String(update)
		}
		for placeholder, name := range names {
			if strings.Contains(condition+update, placeholder) {
				s.names[placeholder] = name
			}
		}
		return s
	}
	mark := func(fingerprint, data bool) statement {
		set, remove := "SET #status = :completed, #owner = :owner, #expiry = :expiry", " REMOVE #lease, #attempts"
		for _, optional := range []struct {
			name string
			is   bool
		}{{"fingerprint", fingerprint}, {"data", data}} {
			if optional.is {
				set += ", #" + optional.name + " = :" + optional.name
			} else {
				remove += ", #" + optional.name
			}
		}
		return build(claimCondition, set+remove)
	}
	return statements{
		mark: [2][2]statement{
			{mark(false, false), mark(false, true)},
			{mark(true, false), mark(true, true)},
		},
		claim: build(claimCondition, ""),
		fresh: build(freshCondition, ""),
		updates: map[updateClaim]statement{
			{false, false}: build(claimCondition, claimSet+fingerprintUnset+", #attempts"),
			{false, true}:  build(claimCondition, claimSet+fingerprintSet+", #attempts"),
			{true, false}:  build(countCondition, countSet+fingerprintUnset),
			{true, true}:   build(countCondition, countSet+fingerprintSet),
		},
		complete: build(liveCondition, "SET #status = :completed, #expiry = :expiry REMOVE #lease, #attempts, #data"),
		completeData: build(liveCondition,
			"SET #status = :completed, #expiry = :expiry, #data = :data REMOVE #lease, #attempts"),
		release:     build("attribute_not_exists(#key) OR ("+mineCondition+")", ""),
		releaseKeep: build(mineCondition, "SET #lease = :zero REMOVE #owner, #fingerprint"),
		releaseUndo: build(mineCondition,
			"SET #lease = :zero, #attempts = if_not_exists(#attempts, :one) - :one REMOVE #owner, #fingerprint"),
		renew: build(liveCondition, "SET #owner = :newOwner, #lease = :lease, #expiry = :expiry"),
	}
}

// Values that every call shares. The SDK only reads them.
var (
	inProgress = &types.AttributeValueMemberS{Value: "INPROGRESS"}
	completed  = &types.AttributeValueMemberS{Value: "COMPLETED"}
	zero       = &types.AttributeValueMemberN{Value: "0"}
	one        = &types.AttributeValueMemberN{Value: "1"}
)

func text(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

func number(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

func seconds(t time.Time) types.AttributeValue { return number(t.Unix()) }

// milliseconds is how Watermarks write a lease. A Store's lease is in LeaseUnit: see Store.lease.
func milliseconds(t time.Time) types.AttributeValue { return number(t.UnixMilli()) }

// lease returns the end of a lease as its attribute holds it.
func (s *Store) lease(t time.Time) types.AttributeValue {
	return number(s.options.leaseUnits(t.UnixMilli()))
}

// freeLease returns what a lease that has run out for r is less than.
func (s *Store) freeLease(r idempotency.ClaimRequest) types.AttributeValue {
	return number(s.options.leaseUnits(leaseLimit(r)))
}
