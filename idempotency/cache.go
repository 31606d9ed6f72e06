package idempotency

import (
	"container/list"
	"sync"
	"time"
)

// maxCachedData bounds the results that are cached, and so a cache of 256 entries to 4 MiB of them.
const maxCachedData = 16 << 10

// cache keeps completed entries in memory, those that were used last. It is safe for concurrent use. A nil cache keeps
// nothing.
type cache struct {
	limit int

	mu      sync.Mutex
	entries map[string]*list.Element
	order   list.List // of cached, what was used last in front
}

type cached struct {
	key   string
	entry Entry
}

func newCache(limit int) *cache { return &cache{limit: limit, entries: make(map[string]*list.Element)} }

// get returns the entry that is kept for key, unless it has expired.
func (c *cache) get(key string, now func() time.Time) (Entry, bool) {
	if c == nil {
		return Entry{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return Entry{}, false
	}
	kept := e.Value.(*cached)
	if expired(&kept.entry, now()) {
		c.order.Remove(e)
		delete(c.entries, key)
		return Entry{}, false
	}
	c.order.MoveToFront(e)
	return cloned(kept.entry), true
}

// put keeps an entry, in place of another one of its key. It must be a completed one: nothing else stays true without the
// store.
func (c *cache) put(key string, entry *Entry) {
	if c == nil || len(entry.Data) > maxCachedData {
		return
	}
	kept := &cached{key, cloned(*entry)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		e.Value = kept
		c.order.MoveToFront(e)
		return
	}
	c.entries[key] = c.order.PushFront(kept)
	if c.order.Len() > c.limit {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.entries, last.Value.(*cached).key)
	}
}

// remember caches a completion that the store has taken.
func (c *Claim) remember(r *CompleteRequest) {
	if c.guard.cache == nil {
		return
	}
	c.guard.cache.put(r.Key, &Entry{
		Status: Completed, Owner: r.Owner, Fingerprint: c.request.Fingerprint, Expiry: r.Expiry, Data: r.Data,
	})
}
