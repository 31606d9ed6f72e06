package simulation

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/oncekit/oncekit/examples/internal/crash"
	"github.com/oncekit/oncekit/examples/internal/draw"
	"github.com/oncekit/oncekit/sources/lambdatest"
)

// shard counts the deliveries of one shard, which follow one another, and lets some of them crash. Those of other shards
// run beside them, so that the stream's numbers of invocations say nothing in a run that is to be the same every time.
type shard struct {
	id      string
	crashes *crash.Crashes

	mu         sync.Mutex
	deliveries map[int]int // by invocation: its number in the shard, from 1
	current    invocation
}

// invocation is one delivery of a shard.
type invocation struct {
	shard    string
	delivery int // counts those of the shard, from 1
	number   int // counts all of the stream
}

const (
	// lanePoints is how many points a visitor's clicks can stop at before their invocation crashes. A click passes seven
	// when it is handled and two when it was handled before, so that some are finished by then.
	lanePoints = 14
	// loopPoints is the same for all the clicks of a batch that a loop reads. It passes three for each.
	loopPoints = 36
)

// loop is the lane of all clicks where a loop handles them.
const loop = "loop"

func (s *simulation) newShard(d draw.Seed, id string) *shard {
	points := lanePoints
	if s.config.Reader != Oncekit {
		points = loopPoints
	}
	return &shard{
		id: id, deliveries: make(map[int]int),
		crashes: crash.New(crash.Options{
			Concurrency: concurrency,
			Timeout:     functionTimeout,
			Fate: func(delivery int) crash.Fate {
				if s.schedule.crashes(id, delivery) {
					return crash.Dies
				}
				return crash.Lives
			},
			Stop: func(delivery int, lane string) int { return 1 + d.Number(points, "stop", id, delivery, lane) },
		}),
	}
}

// begin counts an invocation.
func (s *shard) begin(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = invocation{s.id, len(s.deliveries) + 1, number}
	s.deliveries[number] = s.current.delivery
}

func (s *shard) delivery(number int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliveries[number]
}

// crash is the stream's Options.Crash.
func (s *simulation) crash(p lambdatest.Point) bool {
	sh := s.shardOf[p.RecordIDs[0]]
	var lanes []string
	if p.Moment == lambdatest.BeforeInvoke {
		sh.begin(p.Invocation)
		for _, number := range p.RecordIDs {
			for _, id := range s.clicksOf[number] {
				lanes = append(lanes, s.laneOf(id))
			}
		}
	}
	p.Invocation = sh.delivery(p.Invocation)
	return sh.crashes.At(p, s.laneOf(s.clickOf(p)), lanes)
}

// laneOf returns what is handled one after the other: the clicks of a visitor, or all of them in a loop.
func (s *simulation) laneOf(click string) string {
	if s.config.Reader != Oncekit {
		return loop
	}
	return s.plan.byID[click].Visitor
}

// clickOf returns the click that a point is about: store keys are "clicks#" and the stream's ARN and the record's ID, and
// checkpoints are named "what click-0001".
func (s *simulation) clickOf(p lambdatest.Point) string {
	if p.Key != "" {
		_, rest, _ := strings.Cut(p.Key, "#")
		_, id, _ := strings.Cut(rest, "#")
		return s.byRecord[id]
	}
	return p.Name[strings.LastIndexByte(p.Name, ' ')+1:]
}

type invocationKey struct{}

// invocationOf returns the invocation that ctx belongs to.
func invocationOf(ctx context.Context) invocation {
	v, _ := ctx.Value(invocationKey{}).(invocation)
	return v
}

// inInvocation has the handler know from its context which invocation it is in.
func (s *simulation) inInvocation(h lambdatest.Handler) lambdatest.Handler {
	return lambdatest.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.KinesisEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		sh := s.shardOf[event.Records[0].Kinesis.SequenceNumber]
		sh.mu.Lock()
		v := sh.current
		sh.mu.Unlock()
		return h.Invoke(context.WithValue(ctx, invocationKey{}, v), payload)
	})
}
