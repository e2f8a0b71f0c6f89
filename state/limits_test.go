package state_test

import (
	"runtime"
	"testing"

	"github.com/umbelhq/umbel/state"
)

// TestLowerLimitsFreeMemory measures the heap, so nothing may run beside it.
func TestLowerLimitsFreeMemory(t *testing.T) {
	const tasks = 50_000
	c := state.New(state.Options{MaxTasks: 2 * tasks})
	before := heap()
	fill(c, tasks)
	full, said := heap()-before, c.Footprint()
	c.SetLimits(tasks/5, 1)
	few := heap() - before
	if n := c.Counts().Tasks; n > tasks/5 || n < tasks/6 {
		t.Errorf("%d tasks are held, want up to %d", n, tasks/5)
	}
	// The index of ids keeps its memory.
	if few > full/2 {
		t.Errorf("%d bytes are held, %d before the limits were lowered", few, full)
	}
	if sum := said.Tasks + said.Text; sum < full*2/3 || sum > full*3/2 {
		t.Errorf("the footprint is %+v, the heap has %d bytes", said, full)
	}
	if now := c.Footprint(); now.Count != c.Counts().Tasks || now.Tasks > said.Tasks/2 || now.Text > said.Text {
		t.Errorf("the footprint is %+v, it was %+v", now, said)
	}
	c.SetLimits(2*tasks, 1<<30)
	if n, _ := c.Limits(); n != 2*tasks {
		t.Errorf("%d tasks are held at most, want %d again", n, 2*tasks)
	}
	runtime.KeepAlive(c)
}
