package ingest

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

const (
	discoveryPause = 500 * time.Millisecond // between commands to those that arrived
	maxDiscovered  = 10_000                 // processes remembered
	// lastBeat is the heartbeat after which a process is no longer new. A worker says that it is
	// online before it listens for commands, so its first heartbeat may come too early to answer.
	lastBeat = 3
)

// arrivals notices worker processes that have just begun to send heartbeats.
type discovery struct {
	beats map[clock.Process]int
	wake  chan struct{} // holds one element when somebody has arrived
}

// add counts heartbeats: the first and the last of a new process wake whoever greets it.
func (a *discovery) add(e *state.Event) {
	lane := clock.Process{Hostname: e.Hostname, PID: e.PID}
	if e.Kind == state.WorkerOnline { // perhaps restarted under the pid it had
		delete(a.beats, lane)
	}
	if e.Kind != state.WorkerHeartbeat {
		return
	}
	n := a.beats[lane]
	if n == lastBeat {
		return
	}
	if a.beats == nil || len(a.beats) >= maxDiscovered {
		a.beats = make(map[clock.Process]int)
	}
	if n == 0 { // the event's strings are not ours to keep
		lane.Hostname = strings.Clone(e.Hostname)
	}
	a.beats[lane] = n + 1
	if n == 0 || n == lastBeat-1 {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}
