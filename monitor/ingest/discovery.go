package ingest

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

const (
	discoveryPause = 500 * time.Millisecond // between broadcasts to new processes
	maxDiscovered  = 10_000                 // processes remembered
	// lastNewHeartbeat is the heartbeat after which a process is no longer new. A worker reports that it is online before it
	// listens for commands, so its first heartbeat may be too early to ask.
	lastNewHeartbeat = 3
)

// discovery notices worker processes that have just begun to send heartbeats.
type discovery struct {
	heartbeats map[clock.Process]int
	wake       chan struct{} // holds one element after a new process was noticed
}

// add counts heartbeats, and signals wake at the first and the last of a new process.
func (d *discovery) add(e *state.Event) {
	process := clock.Process{Hostname: e.Hostname, PID: e.PID}
	if e.Kind == state.WorkerOnline { // perhaps restarted under the pid it had
		delete(d.heartbeats, process)
	}
	if e.Kind != state.WorkerHeartbeat {
		return
	}
	n := d.heartbeats[process]
	if n == lastNewHeartbeat {
		return
	}
	if d.heartbeats == nil || len(d.heartbeats) >= maxDiscovered {
		d.heartbeats = make(map[clock.Process]int)
	}
	if n == 0 { // the strings of events are reused
		process.Hostname = strings.Clone(e.Hostname)
	}
	d.heartbeats[process] = n + 1
	if n == 0 || n == lastNewHeartbeat-1 {
		signal(d.wake)
	}
}
