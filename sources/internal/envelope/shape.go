package envelope

// Shape is what of an event tells where it is from.
type Shape struct {
	// Kind is that of the event as JSON, see KindOf, and "no JSON" if it begins like none.
	Kind string
	// EventSource is that of the first record, such as "aws:sqs", whether the event is an object with Records or, from
	// EventBridge Pipes, an array of them.
	EventSource string
	// DetailType is whether the event, or the first of an array of them, has the member detail-type of EventBridge.
	DetailType bool
	// Members are the names of the event's members, up to where it was told.
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
		s.eachMember(func(name string) bool {
			shape.Members = append(shape.Members, name)
			switch name {
			case "detail-type":
				shape.DetailType = true
				return false
			case "Records":
				if s.peek() != '[' {
					return s.value(1)
				}
				s.at++
				s.first(&shape)
				return false // what follows does not matter, and the scanner is in the middle of the array
			}
			return s.value(1)
		})
	default:
		if s.value(0) {
			shape.Kind = KindOf(string(kind))
		}
	}
	return shape
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
		case "detail-type":
			shape.DetailType = true
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
