package kinesis_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/idempotency/watermark"
	"github.com/oncekit/oncekit/sources/kinesis"
	"github.com/oncekit/oncekit/sources/kinesis/kinesistest"
)

// Whatever fails, crashes, hangs and comes again: no record of a partition key starts before those before it are
// finished for good, nothing starts again whose completion is stored, no checkpoint passes a record that is not
// done, and nothing is lost.
func TestPropertyOfAGuardedStream(t *testing.T) { checkStream(t, byGuard) }

// Without a guard a shard is serial and stops at its first failure.
func TestPropertyOfABareStream(t *testing.T) { checkStream(t, byNothing) }

// With a watermark too, and what is done runs again only if the invocation that did it died or could not say so.
func TestPropertyOfAWatermark(t *testing.T) { checkStream(t, byWatermark) }

func checkStream(t *testing.T, by protection) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStreamScenario(rt, by)
		for range s.chances() {
			l := newLedger(s)
			synctest.Test(t, func(t *testing.T) { l.run(t) })
			if report := l.report(); report != "" {
				rt.Fatal(report)
			}
			s.seed++
		}
	})
}

// run runs the scenario to its end, in a bubble.
func (l *ledger) run(t *testing.T) {
	s := l.s
	var err error
	l.stream, err = kinesistest.NewStream("clicks", func(o *kinesistest.Options) {
		o.Shards, o.BatchSize, o.MaximumRetryAttempts, o.ParallelizationFactor = s.shards, s.batchSize, s.retries, s.factor
		o.FunctionTimeout, o.BisectOnError, o.ResetRetriesOnProgress = s.functionTimeout, s.bisect, s.reset
		o.SameSequenceNumbers, o.Consumer = s.sameNumbers, s.consumer
		o.Seed, o.DuplicateProbability, o.Crash, o.StoreFault = s.seed, s.duplicates, s.crash(), l.storeFault(s)
		o.Observe = l.observe
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := kinesis.NewHandler(l.handle, l.options(t))
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	for l.actDue() {
		l.mu.Unlock()
		err := l.stream.Drain(t.Context(), l.invoked(h))
		l.mu.Lock()
		if err != nil {
			l.fault("%v", err)
			break
		}
		l.invocations += 3 // so that what is planned for later comes
	}
	l.mu.Unlock()
	time.Sleep(5 * time.Minute) // stragglers wake up
	if err := l.stream.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * time.Minute) // and what was parked ends
	l.audit()
}

// options is those of the handler.
func (l *ledger) options(t *testing.T) func(*kinesis.Options) {
	s := l.s
	return func(o *kinesis.Options) {
		o.Concurrency, o.Serial, o.StopOnFailure, o.Timeout = s.concurrency, s.serial, s.stop, s.timeout
		o.ErrorOn, o.MaxAttempts, o.Logger = s.errorOn, s.maxAttempts, discard()
		if s.sink {
			o.DeadLetter = l.sink
		}
		switch s.by {
		case byGuard:
			var store idempotency.Store = ledgerStore{idempotency.NewMemoryStore(), l}
			if s.bulk {
				store = storetest.Bulk(store)
			}
			guard, err := idempotency.New("ledger", l.stream.Store(store), func(o *idempotency.Options) {
				o.CountAttempts, o.FailUnrecorded, o.Logger = s.count, s.failsUnsure, discard()
				o.Lease, o.Expiry, o.Skew, o.Wait = s.lease, s.expiry, s.skew, s.wait
			})
			if err != nil {
				t.Fatal(err)
			}
			o.Idempotency = guard
		case byWatermark:
			o.Watermark = kinesis.AssumeParallelizationFactorOne("ledger", ledgerWatermarks{watermark.NewMemoryStore(), l},
				func(o *kinesis.WatermarkOptions) { o.Skew = s.skew })
		}
	}
}

// actDue does what is planned to happen after so many invocations. It reports whether there was anything. The caller
// holds mu.
func (l *ledger) actDue() (acted bool) {
	for ; l.acted < len(l.s.actions) && l.s.actions[l.acted].after <= l.invocations; l.acted++ {
		acted = true
		if err := l.act(l.s.actions[l.acted]); err != nil {
			l.fault("%v", err)
		}
	}
	return acted
}

func (l *ledger) act(a streamAction) error {
	shards := l.stream.Shards()
	i := a.n % len(shards)
	switch a.does {
	case "put":
		for _, r := range a.puts {
			name := l.nextName()
			shard, sequence, err := l.stream.Put(r.record(name))
			if err != nil {
				return err
			}
			lane := r.key
			if lane == "" {
				lane = sequence
			}
			l.put(shard, sequence, []plannedRecord{r}, []string{name}, lane)
		}
	case "aggregate":
		var records []kinesistest.Record
		var names []string
		for k, r := range a.puts {
			names = append(names, fmt.Sprint("r", len(l.entries)+k))
			records = append(records, r.record(names[k]))
		}
		sequence, err := l.stream.PutAggregatedAt(shards[i], records...)
		if err != nil {
			return err
		}
		l.put(shards[i], sequence, a.puts, names, "a")
	case "redeliver":
		var delivered []*ledgerEntry
		for _, e := range l.entries {
			if e.delivered {
				delivered = append(delivered, e)
			}
		}
		if len(delivered) == 0 {
			return nil
		}
		e := delivered[a.n%len(delivered)]
		l.tell("redelivery from %s on", e.name)
		return l.stream.Redeliver(e.shard, e.sequence)
	case "split":
		lower, higher, err := l.stream.Split(shards[i])
		l.parents[lower], l.parents[higher] = []string{shards[i]}, []string{shards[i]}
		l.tell("%s is split: %s and %s", shards[i], lower, higher)
		return err
	case "merge":
		if i == 0 {
			return nil // the first has no neighbour before it
		}
		merged, err := l.stream.Merge(shards[i-1], shards[i])
		l.parents[merged] = []string{shards[i-1], shards[i]}
		l.tell("%s and %s are merged: %s", shards[i-1], shards[i], merged)
		return err
	}
	return nil
}

func (l *ledger) nextName() string { return fmt.Sprint("r", len(l.entries)) }

// record is the record as it is put.
func (r *plannedRecord) record(name string) kinesistest.Record {
	data := fmt.Sprintf(`{"Name":%q}`, name)
	if r.broken {
		data = data[:len(data)-1]
	}
	return kinesistest.Record{PartitionKey: r.key, WithoutPartitionKey: r.key == "", Data: []byte(data)}
}

// audit finds what is lost.
func (l *ledger) audit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.stream.Histories() {
		if h.Waiting || h.Done.IsZero() && h.Discarded.IsZero() {
			l.fault("record %s of %s is nowhere", h.SequenceNumber, h.Shard)
		}
	}
	for _, e := range l.entries {
		if !e.succeeded() && len(e.sunkIn) == 0 && !e.discarded {
			l.fault("%s is lost: it has never succeeded, and nobody has given it up", e.name)
		}
		if e.discarded && l.s.retries < 0 {
			l.fault("%s is discarded, and retries are infinite", e.name)
		}
	}
}
