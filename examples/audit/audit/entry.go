package audit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/sources/dynamodbstream"
)

// Entry is a row of the log: one change of one order.
type Entry struct {
	// OrderID is the key of the item that was changed.
	OrderID string `dynamodbav:"orderId"`
	// EventID is the change's own name. A redelivery has the same one.
	EventID string `dynamodbav:"eventId"`
	// SequenceNumber is the number of the change's record in the stream. Of two changes of an order the later one has the
	// larger number.
	SequenceNumber string `dynamodbav:"sequenceNumber"`
	// Version is the order's after the change, or its last one if it was deleted.
	Version     int64                    `dynamodbav:"version"`
	Operation   dynamodbstream.Operation `dynamodbav:"operation"`
	ByTTL       bool                     `dynamodbav:"byTtl"` // DynamoDB deleted the order because it had expired
	At          time.Time                `dynamodbav:"at"`    // to the second
	Differences []Difference             `dynamodbav:"differences"`
}

// NewEntry returns the row that says what a change has changed.
func NewEntry(c *dynamodbstream.Change[Order]) (Entry, error) {
	e := Entry{
		OrderID: c.Keys.ID, EventID: c.ID(), SequenceNumber: c.SequenceNumber(), Operation: c.Operation(),
		ByTTL: c.ByTTL(), At: c.CreatedAt(), Differences: Differences(c.Old, c.New),
	}
	// A row that took a missing image for a missing order would be false.
	hasOld, hasNew := e.Operation != dynamodbstream.Insert, e.Operation != dynamodbstream.Remove
	if (c.Old != nil) != hasOld || (c.New != nil) != hasNew {
		return Entry{}, fmt.Errorf("audit: %s of order %q has an old image: %v, and a new one: %v, want a stream of "+
			"NEW_AND_OLD_IMAGES", e.Operation, e.OrderID, c.Old != nil, c.New != nil)
	}
	e.Version = cmp.Or(c.New, c.Old).Version
	return e, nil
}
