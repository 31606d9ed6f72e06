package envelope

import "strings"

// Shape is what of an event tells where it is from.
type Shape struct {
	// Kind is that of the event as JSON, see KindOf, and "no JSON" if it begins like none.
	Kind string
	// EventSource is that of the first record, such as "aws:sqs", whether the event is an object with Records or, from
	// EventBridge Pipes, an array of them. Without records, as at the end of a tumbling window, it is that of the
	// event's eventSourceARN.
	EventSource string
	// EventBridge is whether the event, or the first of an array of them, has the member detail-type of EventBridge, or
	// the SystemMetadata of its custom buses.
	EventBridge bool
	// Members are the names of the event's first members.
	Members []string
}

// ShapeOf looks at an event no further than it has to. It does not check that the rest is JSON.
func ShapeOf(payload []byte) Shape {
	s := scanner{data: payload}
	shape := Shape{Kind: "no JSON"}
	switch kind := s.peek(); kind {
	case 0:
	case '[':
		shape.Kind = KindOf("[")
		s.at++
		s.first(&shape)
	case '{':
		shape.Kind = KindOf("{")
		s.eachMember(func(name string) bool { return s.eventMember(name, &shape) })
	default:
		if s.value(0) {
			shape.Kind = KindOf(string(kind))
		}
	}
	return shape
}

// eventMember looks at a member of an event, and returns false if that is enough.
func (s *scanner) eventMember(name string, shape *Shape) bool {
	if len(shape.Members) < 8 {
		shape.Members = append(shape.Members, name)
	}
	kind, start := s.peek(), s.at
	switch {
	case name == "detail-type" || name == "SystemMetadata":
		shape.EventBridge = true
		return false
	case name == "Records" && kind == '[':
		s.at++
		if s.peek() != ']' {
			s.first(shape)
			return false // what follows does not matter, and the scanner is in the middle of the array
		}
		s.at++
		return true
	case !s.value(1):
		return false
	case name == "eventSourceARN":
		arn, _ := String(string(s.data[start:s.at]))
		if parts := strings.SplitN(arn, ":", 4); len(parts) == 4 { // arn:partition:service:...
			shape.EventSource = "aws:" + parts[2]
		}
	}
	return true
}

// first looks at the first element of an array.
func (s *scanner) first(shape *Shape) {
	if s.peek() != '{' {
		return
	}
	s.eachMember(func(name string) bool {
		s.peek()
		start := s.at
		if !s.value(2) {
			return false
		}
		switch name {
		case "eventSource", "EventSource": // SNS has the second
			shape.EventSource, _ = String(string(s.data[start:s.at]))
			return false
		case "detail-type", "SystemMetadata":
			shape.EventBridge = true
			return false
		}
		return true
	})
}

// eachMember calls f before the value of each member of an object, which f reads, until f returns false.
func (s *scanner) eachMember(f func(name string) bool) {
	s.at++
	for s.peek() == '"' {
		start := s.at
		if !s.quotedString() {
			return
		}
		name := memberName(string(s.data[start:s.at]))
		if !s.token(':', "a colon") || !f(name) || s.peek() != ',' {
			return
		}
		s.at++
	}
}
