package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/oncekit/oncekit/deadletter"
)

// letters is a dead-letter queue in memory: a deadletter.Client that keeps what it is given.
type letters struct {
	mu  sync.Mutex
	all []deadletter.Letter
}

// SendMessageBatch implements deadletter.Client.
func (l *letters) SendMessageBatch(
	_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := &sqs.SendMessageBatchOutput{}
	for _, entry := range in.Entries {
		var letter deadletter.Letter
		if err := json.Unmarshal([]byte(aws.ToString(entry.MessageBody)), &letter); err != nil {
			return nil, err
		}
		l.all = append(l.all, letter)
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: entry.Id, MessageId: entry.Id})
	}
	return out, nil
}

// sorted returns the letters in the order of their records.
func (l *letters) sorted() []deadletter.Letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.all)
	slices.SortStableFunc(all, func(a, b deadletter.Letter) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
