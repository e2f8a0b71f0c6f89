package historytest

import (
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// restored is what Restore told. Its zero value is that of an empty history.
type restored struct {
	at      int64
	clock   int64
	workers map[string]string
	tasks   map[string][]byte
	left    []state.Position
	journal []entry

	calls int // to Checkpoint
	stage int // of what comes in order
}

// entry is an entry of the journal.
type entry struct {
	Number       uint64
	Events       string
	Checkpointed bool
}

// restored reads everything back, with at most n finished tasks.
func (c storeTest) restored(n int) restored {
	c.Helper()
	var r restored
	if err := c.Restore(c.Context(), r.into(n)); err != nil {
		c.Fatalf("restore: %v", err)
	}
	if r.calls != 1 {
		c.Errorf("restore told of %d checkpoints, want 1", r.calls)
	}
	r.calls, r.stage = 0, 0
	return r
}

// into returns a Restore that fills r, and fails where something is told twice or out of order.
func (r *restored) into(n int) history.RestoreOptions {
	at := func(stage int) error {
		if stage < r.stage {
			return fmt.Errorf("stage %d after stage %d", stage, r.stage)
		}
		r.stage = stage
		return nil
	}
	return history.RestoreOptions{
		MaxTasks: n,
		Checkpoint: func(p history.Checkpoint) error {
			r.calls++
			r.at, r.clock = p.At, p.Clock
			for name, body := range p.Workers {
				if r.workers == nil {
					r.workers = make(map[string]string)
				}
				r.workers[name] = string(body)
			}
			return at(1)
		},
		Task: func(id string, events []byte) error {
			if r.tasks == nil {
				r.tasks = make(map[string][]byte)
			}
			if _, ok := r.tasks[id]; ok {
				return fmt.Errorf("task %q twice", id)
			}
			r.tasks[id] = events
			return at(2)
		},
		Omitted: func(p state.Position) error {
			r.left = append(r.left, p)
			return at(3)
		},
		Journal: func(number uint64, events []byte, checkpointed bool) error {
			r.journal = append(r.journal, entry{number, string(events), checkpointed})
			return at(4)
		},
	}
}
