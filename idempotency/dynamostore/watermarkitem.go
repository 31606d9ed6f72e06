package dynamostore

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/oncekit/oncekit/idempotency/watermark"
)

const (
	// A claim of an owner who has the shard, or has given it back, was sent before. To grant it again after it was given
	// back would keep the shard from others for an owner that is gone. Nobody owns what was set by hand.
	isFreeMark = "#status = :watermark AND #lease < :free AND (attribute_not_exists(#owner) OR #owner <> :owner)"

	// An update keeps the position, and an expired position must not live on. A put takes those.
	takeCondition  = "attribute_not_exists(#key) OR (" + isFreeMark + " AND #expiry >= :now)"
	beginCondition = "attribute_not_exists(#key) OR (" + isFreeMark + " AND #expiry < :now)"

	heldCondition = "#status = :watermark AND #owner = :owner AND #lease > :zero AND #expiry >= :now"
	moveCondition = heldCondition + " AND (attribute_not_exists(#data) OR #data <= :to)"

	markCondition = "attribute_not_exists(#key) OR #status = :watermark"
	rewindSet     = "SET #status = :watermark, #expiry = :expiry, #lease = :zero"
)

// marked is the status of a watermark. It is none of a Store's, which therefore takes no watermark for a claim.
var marked = &types.AttributeValueMemberS{Value: "WATERMARK"}

// prepare makes the statements.
func (w *Watermarks) prepare(o *Options) {
	names := map[string]string{
		"#key": o.KeyAttribute, "#status": o.StatusAttribute, "#expiry": o.ExpiryAttribute, "#lease": o.LeaseAttribute,
		"#data": o.DataAttribute, "#owner": o.OwnerAttribute,
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
	w.claim = build(takeCondition, "SET #status = :watermark, #owner = :owner, #lease = :lease, #expiry = :expiry")
	w.fresh = build(beginCondition, "")
	w.keep = build(heldCondition, "SET #expiry = :expiry")
	w.release = build(heldCondition, "SET #expiry = :expiry, #lease = :zero")
	w.advance = build(moveCondition, "SET #data = :to, #expiry = :expiry")
	w.advanceRelease = build(moveCondition, "SET #data = :to, #expiry = :expiry, #lease = :zero")
	w.rewind = build(markCondition, rewindSet+", #data = :to REMOVE #owner")
	w.forget = build(markCondition, rewindSet+" REMOVE #owner, #data")
}

// mark is what an item holds. Its zero value is that of no item.
type mark struct {
	position watermark.Position
	owner    string
	lease    int64 // epoch milliseconds, 0: nobody has the shard
	expiry   int64 // epoch seconds
}

// mark reads an item. An item that is not of the layout is an error, so that nothing is skipped because of it.
func (w *Watermarks) mark(item map[string]types.AttributeValue) (mark, error) {
	o := &w.store.options
	r := reader{item: item}
	m := mark{
		position: w.position(&r),
		owner:    r.text(o.OwnerAttribute),
		lease:    r.number(o.LeaseAttribute),
		expiry:   r.number(o.ExpiryAttribute),
	}
	switch status := r.text(o.StatusAttribute); {
	case r.err != nil:
	case status != marked.Value:
		r.err = fmt.Errorf("attribute %q is %q; want %q", o.StatusAttribute, status, marked.Value)
	case !r.has(o.LeaseAttribute):
		r.err = fmt.Errorf("status is %s and attribute %q is missing; want epoch milliseconds", status, o.LeaseAttribute)
	case !r.has(o.ExpiryAttribute):
		r.err = fmt.Errorf("status is %s and attribute %q is missing; want epoch seconds", status, o.ExpiryAttribute)
	}
	if r.err != nil {
		return mark{}, r.err
	}
	return m, nil
}

// position reads the position of an item, the zero one if there is none.
func (w *Watermarks) position(r *reader) watermark.Position {
	name := w.store.options.DataAttribute
	if !r.has(name) {
		return watermark.Position{}
	}
	p, err := parseOrdered(r.text(name))
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("attribute %q is %w", name, err)
	}
	return p
}

func (m *mark) expired(now time.Time) bool { return m.expiry < now.Unix() }

// free reports whether r may have the shard.
func (m *mark) free(r watermark.ClaimRequest) bool {
	return m.lease < r.Now.UnixMilli()-r.Skew.Milliseconds()
}

// holder says who has a shard that is not the caller's.
func (m *mark) holder() string {
	switch {
	case *m == mark{}:
		return "it is gone"
	case m.lease == 0:
		return "nobody has it: it was given back by another owner, or rewound"
	default:
		return "it is another owner's"
	}
}

// ordered returns a position, which is not zero, as text whose order is that of positions.
func ordered(p watermark.Position) string {
	sequence := strings.TrimLeft(p.Sequence, "0")
	if sequence == "" {
		sequence = "0"
	}
	return fmt.Sprintf("%03d:%s/%010d", len(sequence), sequence, p.Sub)
}

// parseOrdered returns the position that ordered wrote. Text that it would have written otherwise is an error, since it
// would not compare.
func parseOrdered(s string) (watermark.Position, error) {
	_, rest, _ := strings.Cut(s, ":")
	p, err := watermark.Parse(rest)
	if err != nil || p.IsZero() || ordered(p) != s {
		return watermark.Position{}, fmt.Errorf("%.200q; want a position like %q", s, ordered(watermark.Position{Sequence: "496"}))
	}
	return p, nil
}
