package idempotency

// Plant writes an entry as it is, as another tool would write it that shares the store.
func (s *MemoryStore) Plant(key string, e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(key, e)
}
