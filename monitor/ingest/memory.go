package ingest

import (
	"math"
	"runtime/metrics"

	"github.com/umbelhq/umbel/state"
)

// MemoryHealth is how much is held in memory, and at most. Without GOMEMLIMIT, Limit is 0 and the rest is as configured.
type MemoryHealth struct {
	Limit    int64 // that the process is to stay below, bytes, 0 if there is none
	MaxTasks int   // held at most now
	MaxText  int64 // bytes
	Reduced  bool  // that is less than what is configured, since the limit is near
}

// memoryGuard keeps the process below the memory limit of Go: it lowers how many tasks, and how much text, are held, before
// the heap reaches it. The history has the rest.
type memoryGuard struct {
	tasks int // as configured
	text  int64
	usage func() memoryUsage
	told  bool // that it has lowered something

	cycles uint64
	rest   int64 // bytes that live beside the cluster, as of the last collection
}

// memoryUsage is what Go tells about its memory.
type memoryUsage struct {
	limit  int64 // math.MaxInt64 if there is none
	live   int64 // bytes of the heap that the last collection found in use
	beside int64 // bytes that are no objects: stacks, tables of the runtime
	cycles uint64
}

const (
	// What lives may fill this share of the limit: above that the collector runs more and more often.
	liveShare = 0.7
	// Text may take this share of what the tasks and their text may take together.
	textShare = 0.5
	// However low the limit is, this much is held.
	leastTasks   = 1_000
	leastText    = 2 << 20
	leastPerTask = 256 // bytes that a task is taken to need at least
)

// limits returns what may be held of a cluster that takes f.
func (g *memoryGuard) limits(f state.Footprint) (tasks int, text int64, h MemoryHealth) {
	u := g.usage()
	if u.limit == math.MaxInt64 {
		return g.tasks, g.text, MemoryHealth{MaxTasks: g.tasks, MaxText: g.text}
	}
	if u.cycles != g.cycles {
		g.cycles, g.rest = u.cycles, max(u.live-f.Tasks-f.Text, 0)
	}
	budget := max(int64(float64(u.limit)*liveShare)-g.rest-u.beside, 0)
	text = min(g.text, max(int64(float64(budget)*textShare), leastText))
	perTask := max(f.Tasks/int64(max(f.Count, 1)), leastPerTask)
	if f.Count < leastTasks {
		perTask = leastPerTask // a few tasks do not tell
	}
	tasks = int(min(int64(g.tasks), max((budget-min(f.Text, text))/perTask, leastTasks)))
	return tasks, text, MemoryHealth{Limit: u.limit, MaxTasks: tasks, MaxText: text, Reduced: tasks < g.tasks || text < g.text}
}

// guardMemory lowers or raises what the cluster may hold. mu is held.
func (in *Ingester) guardMemory() {
	tasks, text, h := in.guard.limits(in.cluster.Footprint())
	if h.Reduced && !in.guard.told {
		in.guard.told = true
		in.log.Warn("fewer tasks are held in memory, since the memory limit is near", "limit", h.Limit, "max_tasks", h.MaxTasks, "max_text", h.MaxText)
	}
	in.memory = h
	in.cluster.SetLimits(tasks, text)
}

func readMemory() memoryUsage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/gc/gomemlimit:bytes"},
	}
	metrics.Read(samples)
	v := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	program := v(2) - v(3)
	return memoryUsage{limit: v(7), live: v(0), cycles: samples[1].Value.Uint64(), beside: program - v(4) - v(5) - v(6)}
}
