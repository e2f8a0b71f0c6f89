package rollup

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Other is the name for everything beyond the bounds on names.
const Other = "(other)"

// Bounds of memory, whatever the names in events.
const (
	maxCells         = 400                    // cells of a minute; beyond, workers become Other
	maxNamed         = 800                    // cells of a minute with Other workers; beyond, all becomes Other
	maxCellsInMemory = 20_000                 // cells in memory; beyond, all becomes Other
	minutesInMemory  = 3                      // minutes that a cell stays in memory after it was last taken
	maxAge           = 7 * 86_400 * 1_000_000 // µs, beyond which an event is too old to count
	minute           = 60 * 1_000_000         // µs
)

// Recorder counts events by minute, name, worker and queue, until they are taken to be stored. It is not
// safe for concurrent use; the zero value is ready.
//
// What Take returns is added to stored rollups in one transaction with the journal of the same events. So a crash loses
// and repeats nothing if the journal has the new events, and Replay is called with those that no checkpoint includes.
type Recorder struct {
	cells   map[key]*cell
	minutes map[int64]int // cells by minute
	newest  int64         // minute
	watched int64         // minute
	changed bool
}

type key struct {
	at                  int64
	name, worker, queue string
}

type cell struct {
	changed                              bool
	received, succeeded, failed, retried int64
	wait, run                            Histogram
}

// Add counts an event if it is new and counts, in the minute of its timestamp, corrected by the known offset of its
// sender's clock. A timestamp after the receipt counts as that.
func (r *Recorder) Add(e *state.Event, ch state.Change) {
	if ch.New {
		r.Replay(e, ch)
	}
}

// Replay counts an event that was new when it was received first, even if its task was stored with it since.
func (r *Recorder) Replay(e *state.Event, ch state.Change) {
	if !ch.First {
		return
	}
	switch e.Kind {
	case state.TaskReceived, state.TaskSucceeded, state.TaskFailed, state.TaskRetried:
	case state.TaskStarted:
		if ch.WaitMicros <= 0 {
			return
		}
	default:
		return
	}
	at := e.Micros - ch.OffsetMicros
	if e.ReceivedMicros != 0 {
		at = min(at, e.ReceivedMicros)
		if at < e.ReceivedMicros-maxAge {
			return
		}
	}
	r.changed = true
	r.cell(key{at / minute, ch.Name, ch.Worker, ch.Queue}).count(e, ch)
}

func (c *cell) count(e *state.Event, ch state.Change) {
	c.changed = true
	switch e.Kind {
	case state.TaskReceived:
		c.received++
	case state.TaskSucceeded:
		c.succeeded++
		if e.Has(state.FieldRuntime) && e.Runtime >= 0 {
			c.run.Add(int64(min(e.Runtime*1e6, maxDuration)))
		}
	case state.TaskFailed:
		c.failed++
	case state.TaskRetried:
		c.retried++
	case state.TaskStarted:
		c.wait.Add(ch.WaitMicros)
	default:
	}
}

// cell returns the cell of k, or that of Other if there are too many.
func (r *Recorder) cell(k key) *cell {
	if c := r.cells[k]; c != nil {
		return c
	}
	if r.cells == nil {
		r.cells, r.minutes = map[key]*cell{}, map[int64]int{}
	}
	if r.minutes[k.at] >= maxCells && k.name != "" {
		k.worker = Other
	}
	if r.minutes[k.at] >= maxNamed || len(r.cells) >= maxCellsInMemory {
		k.name, k.worker, k.queue = Other, Other, Other
	}
	if c := r.cells[k]; c != nil {
		return c
	}
	k.name, k.worker, k.queue = strings.Clone(k.name), strings.Clone(k.worker), strings.Clone(k.queue)
	c := &cell{}
	r.cells[k] = c
	r.minutes[k.at]++
	r.newest = max(r.newest, k.at)
	return c
}

// MarkObserved records that events are being counted now, which distinguishes a minute without events from one in which no
// monitor was running.
func (r *Recorder) MarkObserved(now time.Time) {
	if at := now.UnixMicro() / minute; at != r.watched {
		r.watched = at
		r.cell(key{at: at}).changed, r.changed = true, true
	}
}

// Changed reports whether Take would return anything.
func (r *Recorder) Changed() bool { return r.changed }

// Take returns the counts since the last Take, oldest first.
func (r *Recorder) Take() []history.Rollup {
	var taken []history.Rollup
	r.changed = false
	for k, c := range r.cells {
		if c.changed {
			taken = append(taken, history.Rollup{
				At: k.at, Name: k.name, Worker: k.worker, Queue: k.queue,
				Received: c.received, Succeeded: c.succeeded, Failed: c.failed, Retried: c.retried,
				Wait: c.wait.Encode(), Run: c.run.Encode(),
			})
			*c = cell{wait: c.wait[:0], run: c.run[:0]}
		} else if k.at < r.newest-minutesInMemory {
			r.drop(k)
		}
	}
	slices.SortFunc(taken, func(a, b history.Rollup) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Queue, b.Queue))
	})
	return taken
}

func (r *Recorder) drop(k key) {
	delete(r.cells, k)
	if r.minutes[k.at]--; r.minutes[k.at] == 0 {
		delete(r.minutes, k.at)
	}
}
