package lambdatest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ReadFailures reads an answer as an event source mapping does that reports batch item failures. It returns the
// identifiers of the records that failed, or an error if the answer makes all of them failed. ids are those of the
// batch.
//
// The rules are those for SQS (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html). An object
// without batchItemFailures is an empty answer, which is full success: so a misspelt key loses what has failed. The
// guide says nothing about an answer that is JSON but no object, nor about an answer of no bytes; both are taken as
// empty, which is the reading under which a faulty handler loses its records and a test notices. For streams, what is not
// JSON and an identifier that is not in the batch are undocumented, and read as for SQS.
func ReadFailures(response []byte, ids []string) (failed map[string]bool, err error) {
	if len(bytes.TrimSpace(response)) == 0 {
		return nil, nil
	}
	if !json.Valid(response) {
		return nil, fmt.Errorf("lambdatest: answer is not JSON: %.100q", response)
	}
	// A map, since the fields of a struct would take keys of another case too.
	var answer map[string]json.RawMessage
	if json.Unmarshal(response, &answer) != nil {
		return nil, nil
	}
	list, ok := answer["batchItemFailures"]
	if !ok {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil {
		return nil, fmt.Errorf("lambdatest: batchItemFailures is %.100q, but must be a list or null", list)
	}
	batch := make(map[string]bool, len(ids))
	for _, id := range ids {
		batch[id] = true
	}
	failed = make(map[string]bool, len(items))
	for i, raw := range items {
		id := identifier(raw)
		switch {
		case id == "":
			return nil, fmt.Errorf("lambdatest: batchItemFailures[%d] is %.100q, but must be an object with a non-empty "+
				"itemIdentifier", i, raw)
		case !batch[id]:
			return nil, fmt.Errorf("lambdatest: batchItemFailures[%d] names %q, which is not in the batch", i, id)
		}
		failed[id] = true
	}
	return failed, nil
}

// identifier returns the itemIdentifier of one item, and "" if there is none: a wrong key, null, not a string.
func identifier(raw json.RawMessage) string {
	var item map[string]json.RawMessage
	var id string
	if json.Unmarshal(raw, &item) != nil {
		return ""
	}
	if value, ok := item["itemIdentifier"]; ok && json.Unmarshal(value, &id) != nil {
		return ""
	}
	return id
}
