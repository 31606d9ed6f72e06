package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The key attributes of the log's table, both strings.
const (
	PartitionKey = "orderId"
	SortKey      = "changeId" // see ChangeID
)

// TableLog is a log in a DynamoDB table: a query for an order returns its changes in their order.
//
// A row is put only where there is none, and its key is the change's own. So the row of a change is there once, even if
// it is put twice because a crash fell between the row and the guard's completion. With an effect like this one, what is
// the guard for?
//
//   - Without one, a shard has to be handled one change after the other, and to stop at the first that fails
//     (dynamodbstream does that then): whatever went on behind the failure would be put again with each retry. A refused
//     put is harmless, but is paid for like any other. With the guard one order that cannot be logged holds up no other.
//   - The guard counts attempts. A stream does not, so a change that can never be logged would block its shard until
//     Lambda discards it, and the good ones of its batch.
//   - The next effect may not be one that the table refuses the second time: a mail, or a call of another service.
//
// Where none of this matters, the conditional put alone is enough, and saves the guard's two writes a change.
type TableLog struct {
	// Client is the SDK's, and Table the name of the table.
	Client *dynamodb.Client
	Table  string
}

// Append implements Log.
func (l TableLog) Append(ctx context.Context, e Entry) error {
	row, err := attributevalue.MarshalMap(e)
	if err != nil {
		return fmt.Errorf("audit: row of change %s: %w", e.EventID, err)
	}
	row[SortKey] = &types.AttributeValueMemberS{Value: e.ChangeID()}
	_, err = l.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &l.Table, Item: row,
		ConditionExpression:      aws.String("attribute_not_exists(#id)"),
		ExpressionAttributeNames: map[string]string{"#id": SortKey},
	})
	if _, there := errors.AsType[*types.ConditionalCheckFailedException](err); there {
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit: append to table %q: %w", l.Table, err)
	}
	return nil
}

// maxDigits is how long a stream's sequence numbers can be
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html).
const maxDigits = 40

// ChangeID returns a name of the change that sorts, as text, in the order of the changes. Sequence numbers have
// different lengths, so that it takes zeros before them. The eventID makes the name the change's own.
func (e Entry) ChangeID() string {
	return strings.Repeat("0", max(0, maxDigits-len(e.SequenceNumber))) + e.SequenceNumber + "#" + e.EventID
}
