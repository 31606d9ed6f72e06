package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// load is what requests cost: how many they are, and what DynamoDB bills for them.
type load struct {
	Requests              int
	WriteUnits, ReadUnits float64
}

func (l *load) add(other load) {
	l.Requests += other.Requests
	l.WriteUnits += other.WriteUnits
	l.ReadUnits += other.ReadUnits
}

// price returns the units as a number of write units. A read unit costs a fifth of a write unit on demand
// (https://aws.amazon.com/dynamodb/pricing/on-demand/).
func (l load) price() float64 { return l.WriteUnits + l.ReadUnits/5 }

// loadOf returns what a request costs, by DynamoDB's rules for items of up to 1 KB, which all items here are. A write
// is one unit, also where its condition refuses it; a consistent read is one, another half of one; each statement and
// each key of a batch counts as if it were alone
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html).
//
// A request that failed otherwise than by its condition costs no units. The error says that there is no rule.
func loadOf(operation string, body []byte, status int, reply []byte) (load, error) {
	l := load{Requests: 1}
	if status != 200 && !strings.Contains(string(reply), "ConditionalCheckFailed") {
		return l, nil
	}
	switch operation {
	case "PutItem", "UpdateItem", "DeleteItem":
		l.WriteUnits = 1
	case "GetItem":
		var request struct{ ConsistentRead bool }
		if err := json.Unmarshal(body, &request); err != nil {
			return l, fmt.Errorf("comparison: body of %s: %w", operation, err)
		}
		l.ReadUnits = readUnits(request.ConsistentRead)
	case "BatchGetItem":
		var request struct {
			RequestItems map[string]struct {
				ConsistentRead bool
				Keys           []struct{}
			}
		}
		if err := json.Unmarshal(body, &request); err != nil {
			return l, fmt.Errorf("comparison: body of %s: %w", operation, err)
		}
		for _, table := range request.RequestItems {
			l.ReadUnits += readUnits(table.ConsistentRead) * float64(len(table.Keys))
		}
	case "BatchExecuteStatement":
		var request struct {
			Statements []struct {
				Statement      string
				ConsistentRead bool
			}
		}
		if err := json.Unmarshal(body, &request); err != nil {
			return l, fmt.Errorf("comparison: body of %s: %w", operation, err)
		}
		for _, s := range request.Statements {
			if strings.HasPrefix(s.Statement, "SELECT") {
				l.ReadUnits += readUnits(s.ConsistentRead)
			} else {
				l.WriteUnits++
			}
		}
	default:
		return l, fmt.Errorf("comparison: operation is %q, want one that loadOf has a rule for", operation)
	}
	return l, nil
}

func readUnits(consistent bool) float64 {
	if consistent {
		return 1
	}
	return 0.5
}
