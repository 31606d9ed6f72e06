package stream

import (
	"errors"
	"fmt"
	"time"

	"github.com/oncekit/oncekit/sources/internal/envelope"
)

// Members are what the event of a tumbling window says beside its records, as JSON
// (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-windows.html).
type Members struct{ window, state, shard, arn, final, early string }

// member notes a member of the event.
func (m *Members) member(name, value string) {
	switch name {
	case "window":
		m.window = value
	case "state":
		m.state = value
	case "shardId":
		m.shard = value
	case "eventSourceARN":
		m.arn = value
	case "isFinalInvokeForWindow":
		m.final = value
	case "isWindowTerminatedEarly":
		m.early = value
	}
}

// Present reports whether the event is that of a window.
func (m *Members) Present() bool { return m.window != "" || m.final != "" }

// Invocation is one call of a function for a window.
type Invocation struct {
	Start, End      time.Time
	ShardID         string
	ARN             string
	Final           bool
	TerminatedEarly bool
	state           string
}

// Invocation decodes the members. An error says what of them is missing or different.
func (m *Members) Invocation() (*Invocation, error) {
	if m.window == "" {
		return nil, errors.New("event has no window, want that of a mapping with TumblingWindowInSeconds")
	}
	var v Invocation
	var err error
	if v.Start, err = bound(m.window, "start"); err != nil {
		return nil, err
	}
	if v.End, err = bound(m.window, "end"); err != nil {
		return nil, err
	}
	v.ShardID, _ = envelope.String(m.shard)
	v.ARN, _ = envelope.String(m.arn)
	if v.state = m.state; m.state == "" || m.state[0] != '{' {
		// To begin with an empty one would lose what was counted so far.
		return nil, fmt.Errorf("event has a window's state that is %s, want an object, which is {} when the window begins",
			envelope.KindOf(m.state))
	}
	switch {
	case v.ShardID == "":
		return nil, fmt.Errorf("event of a window has a shardId that is %s, want text", envelope.KindOf(m.shard))
	case v.ARN == "":
		return nil, fmt.Errorf("event of a window has an eventSourceARN that is %s, want text", envelope.KindOf(m.arn))
	case m.final != "true" && m.final != "false":
		return nil, fmt.Errorf("event of a window has isFinalInvokeForWindow that is %s, want a boolean", envelope.KindOf(m.final))
	}
	v.Final, v.TerminatedEarly = m.final == "true", m.early == "true"
	return &v, nil
}

// bound decodes the start or the end of a window.
func bound(window, name string) (time.Time, error) {
	value := envelope.Member(window, name)
	text, ok := envelope.String(value)
	if !ok {
		return time.Time{}, fmt.Errorf("event has a window whose %s is %s, want a time", name, envelope.KindOf(value))
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("event has a window whose %s is %.100q, want a time such as 2020-12-09T07:04:00Z", name, text)
	}
	return t, nil
}
