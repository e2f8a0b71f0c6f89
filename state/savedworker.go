package state

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// SaveWorkers calls f with every worker that changed since it was last saved, as JSON, and with nil for those that
// were forgotten since. What losses returns is saved with a worker; it may be nil.
func (c *Cluster) SaveWorkers(losses func(name string) []byte, f func(name string, saved []byte)) error {
	for _, w := range c.workers {
		if !w.changed {
			continue
		}
		s := w.saved()
		if losses != nil {
			s.Losses = losses(w.name)
		}
		b, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("save worker: %w", err)
		}
		w.changed = false
		f(w.name, b)
	}
	for name := range c.forgotten {
		f(name, nil)
	}
	clear(c.forgotten)
	return nil
}

// LoadWorker adds a worker as it was saved.
func (c *Cluster) LoadWorker(saved []byte) error {
	var s savedWorker
	if err := json.Unmarshal(saved, &s); err != nil {
		return fmt.Errorf("load worker: %w", err)
	}
	if len(s.Incarnations) == 0 {
		return fmt.Errorf("load worker: no process: %w", ErrSaved)
	}
	w := c.addWorker(s.Name)
	w.incarnations = s.Incarnations[max(len(s.Incarnations)-maxIncarnations, 0):]
	w.dropped, w.lastSeen, w.lastHeartbeat, w.clock = s.Dropped, s.LastSeen, s.LastHeartbeat, s.Clock
	w.offset, w.lastReport = s.Offset, s.LastReport
	for i := range w.incarnations {
		w.processes = max(w.processes, w.incarnations[i].Number)
	}
	for i := range w.incarnations { // older files have no numbers
		if l := &w.incarnations[i]; l.Number == 0 {
			w.processes++
			l.Number = w.processes
		}
	}
	return nil
}

// savedWorker is a worker as it is saved. JSON names are those of the first version.
type savedWorker struct {
	Name          string
	Incarnations  []incarnation `json:"Lives"`
	Dropped       int64
	LastSeen      int64 `json:"Heard"`
	LastHeartbeat int64 `json:"Beat"`
	Clock         int64
	Offset        offset
	LastReport    *LastReport `json:",omitempty"`
	Losses        []byte      `json:",omitempty"` // loss.Detector.Save
}

// saved copies what is saved of a worker. JSON has no number that is not finite.
func (w *worker) saved() savedWorker {
	s := savedWorker{w.name, slices.Clone(w.incarnations), w.dropped, w.lastSeen, w.lastHeartbeat, w.clock, w.offset, w.lastReport, nil}
	for i := range s.Incarnations {
		r := &s.Incarnations[i].Report
		if finite(r.Freq) != r.Freq {
			r.Freq, r.Has = 0, r.Has&^FieldFreq
		}
		for n, l := range r.Load {
			r.Load[n] = finite(l)
		}
	}
	return s
}

func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}
