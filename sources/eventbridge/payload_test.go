package eventbridge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// published is when the events of the tests are published, unless they say otherwise.
var published = time.Date(2026, 9, 23, 18, 0, 0, 0, time.UTC)

// order is the detail of the tests' events.
type order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// uuid returns the id of event n, as EventBridge makes them.
func uuid(n int) string { return fmt.Sprintf("17793124-05d4-b198-2fde-%012d", n) }

// keyOf is the guard's key of event n.
func keyOf(n int) string { return "com.example.orders#" + uuid(n) }

// placed returns event n, that an order of this id was placed, with every member that EventBridge sends.
func placed(n int, id string) string {
	return fmt.Sprintf(`{"version":"0","id":%q,"detail-type":"Order Placed","source":"com.example.orders","account":"123456789012",`+
		`"time":%q,"region":"eu-central-1","resources":["arn:aws:ecs:eu-central-1:123456789012:task/7"],"detail":{"id":%q,"amount":%d}}`,
		uuid(n), published.Format(time.RFC3339), id, n)
}

// orders returns events 0, 1, ... of orders with these ids.
func orders(ids ...string) []string {
	events := make([]string, len(ids))
	for i, id := range ids {
		events[i] = placed(i, id)
	}
	return events
}

func array(events ...string) []byte { return []byte("[" + strings.Join(events, ",") + "]") }

// withMetadata returns data as a subscriber's transformer WITH_METADATA delivers them, in an event group.
func withMetadata(n int, data, group string) string {
	system, err := json.Marshal(map[string]string{
		"ContentType": "application/json", "aws:EventId": uuid(n), "aws:DeliveryType": "LIVE", "EventGroupId": group,
		"aws:IngestionTime": published.Add(time.Second).Format(time.RFC3339), "aws:SequenceNumber": fmt.Sprint(10000000000000000000 + uint64(n)),
	})
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"Data":%s,"Metadata":{"tenant":"acme"},"SystemMetadata":%s}`, data, system)
}

// change returns the event with each old part replaced, which it must have.
func change(event string, oldNew ...string) string {
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(event, oldNew[i]) {
			panic("no " + oldNew[i] + " in " + event)
		}
		event = strings.ReplaceAll(event, oldNew[i], oldNew[i+1])
	}
	return event
}

// quote returns the text as a JSON string.
func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

const ruleARN = "arn:aws:events:eu-central-1:123456789012:rule/nightly"

// tick is the event of a scheduled rule.
const tick = `{"version":"0","id":"cdc73f9d-aea9-11e3-9d5a-835b769c0d9c","detail-type":"Scheduled Event","source":"aws.events",` +
	`"account":"123456789012","time":"2026-09-23T18:00:00Z","region":"eu-central-1","resources":["` + ruleARN + `"],"detail":{}}`

// scheduled is what Scheduler sends where a schedule has no input.
const scheduled = `{"version":"0","id":"37666ae6-48cf-4285-b4c6-a3320b38824a","detail-type":"Scheduled Event","source":"aws.scheduler",` +
	`"account":"123456789012","time":"2026-09-23T18:00:00Z","region":"eu-central-1",` +
	`"resources":["arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly"],"detail":"{}"}`

// templated is what it sends for the input that the documentation gives.
const templated = `{"source":"arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly","id":"2026-09-23T18:00:00Z",` +
	`"detail-type":"Schedule","detail":{"id":"nightly"}}`
