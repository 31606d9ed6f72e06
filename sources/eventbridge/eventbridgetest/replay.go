package eventbridgetest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Replay delivers the events again whose time is from the one to the other, both included, and returns how many these are. They
// have the ids that they had, and the replay's name, by which a function can tell them. That ids stay the same AWS implies and
// does not state.
//
// A rule's events come out of an archive of all events: those of one minute after those of the minute before, and in any
// order within it (https://docs.aws.amazon.com/goto/WebAPI/events/StartReplay). A custom event bus delivers what it has
// retained in the order in which it was put, and marks it as a replay without a name. Neither replays a replay.
//
// A name is 1 to 64 letters, digits, dots, underscores and hyphens, and can be used once.
func (b *Bus) Replay(from, to time.Time, name string) (int, error) {
	switch {
	case !validName(name, "", 64):
		return 0, fmt.Errorf("eventbridgetest: replay name is %q, but must be 1 to 64 letters, digits, dots, underscores and hyphens",
			name)
	case to.Before(from):
		return 0, fmt.Errorf("eventbridgetest: replay is from %v to %v, but must end after it begins", from, to)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, b.errClosed()
	case b.replays[name]:
		return 0, fmt.Errorf("eventbridgetest: bus %q has had a replay %q, but the name must be a new one", b.name, name)
	}
	b.replays[name] = true

	type archived struct {
		*event
		minute int
		order  float64
	}
	var replayed []archived
	for _, e := range b.events {
		if e.Time.Before(from) || e.Time.After(to) {
			continue
		}
		a := archived{event: e}
		if b.options.Subscriber == nil {
			a.minute = int(e.Time.Sub(from) / time.Minute)
			a.order = b.seed.Fraction("replay", name, strconv.Itoa(e.number))
		}
		replayed = append(replayed, a)
	}
	slices.SortStableFunc(replayed, func(x, y archived) int {
		return cmp.Or(cmp.Compare(x.minute, y.minute), cmp.Compare(x.order, y.order))
	})
	now := time.Now()
	for _, e := range replayed {
		b.stats.Replayed++
		b.publish(e.event, name, now)
	}
	return len(replayed), nil
}
