package remote

import "time"

// cacheEntry is a worker, or the topology, that is inspected in rounds, one at a time.
type cacheEntry struct {
	inspection Inspection
	wantedAt   time.Time     // last call that does not wait
	once       bool          // one round is wanted
	usedAt     time.Time     // last use
	startedAt  time.Time     // when the last round began
	round      chan struct{} // closed when the current round ends, nil if there is none
	stale      bool          // its worker has changed since the last round began
}

// due reports whether a round may begin.
func (s *cacheEntry) due(now time.Time) bool {
	return s.round == nil && now.Sub(s.startedAt) >= s.pause()
}

// pause is the least time from one round to the next.
func (s *cacheEntry) pause() time.Duration {
	if s.stale {
		return minInterval
	}
	return MaxAge
}

// begin marks the start of a round. The caller holds mu.
func (i *Inspector) begin(s *cacheEntry, now time.Time) {
	s.startedAt, s.round, s.once, s.stale = now, make(chan struct{}), false, false
}

// end marks the end of a round and closes changed. The caller holds mu.
func (i *Inspector) end(s *cacheEntry) {
	close(s.round)
	s.round = nil
	close(i.changed)
	i.changed = make(chan struct{})
	i.wakeRun()
}

// want marks s as used, so that Run refreshes it for a while. The caller holds mu.
func (i *Inspector) want(s *cacheEntry, now time.Time) {
	if s.due(now) || now.Sub(s.wantedAt) >= watchedFor {
		i.wakeRun()
	}
	s.wantedAt = now
}

// wakeRun makes Run check for due inspections now.
func (i *Inspector) wakeRun() {
	select {
	case i.wake <- struct{}{}:
	default: // it is awake
	}
}

// entry returns the cache entry of a name. The caller holds mu.
func (i *Inspector) entry(subjects map[string]*cacheEntry, name string, now time.Time) *cacheEntry {
	s := subjects[name]
	if s == nil {
		if len(subjects) >= maxNodes {
			forget(subjects)
		}
		s = &cacheEntry{inspection: Inspection{Node: name}}
		subjects[name] = s
	}
	s.usedAt = now
	return s
}

// forget drops the subject that was not used for longest.
func forget(subjects map[string]*cacheEntry) {
	oldest := ""
	for name, s := range subjects {
		if oldest == "" || s.usedAt.Before(subjects[oldest].usedAt) {
			oldest = name
		}
	}
	delete(subjects, oldest)
}
