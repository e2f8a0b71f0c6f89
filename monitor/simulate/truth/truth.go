// Package truth makes short histories of a cluster in which everything goes wrong that may, and of which everything is
// known: what happened when, because of what, by which clocks, and which events were lost. What Umbel concludes from the
// events that arrived is compared with that: a law is a test over many seeds in this directory.
//
// A history has wall clocks that are up to an hour off, 5 % of its events lost, others delayed, overtaken or delivered
// twice; workers that crash or stop and come back under the same pid, with clocks that begin again; messages delivered
// again after a crash or while their first execution still runs; reports that are later than what they report; retries,
// replaced tasks, clients that publish from several threads or report nothing; gossip, or none.
//
// Package simulate makes longer and more realistic ones, as bytes.
package truth

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

// History is all that happened. Times are µs since 1970 UTC by a clock that is right, which Umbel's is.
type History struct {
	Events  []Event          // by Reported
	Pings   []Ping           // by Sent
	Skew    map[string]int64 // by name of host: how far its wall clock is ahead, µs
	Workers []Life           // lives of workers, by Began
	Gossip  bool             // workers hear each other
	SplitAt int64            // from then on only those of one host; 0 is never

	causes [][]int32 // direct ones of each instant
	past   [][]uint64
}

// Event is an event that a process sent.
type Event struct {
	state.Event        // as it arrives, if it does; ReceivedMicros is by Umbel's clock
	Host        string // that it was sent from
	Happened    int64  // when what it reports did: a message was published, a task began
	Reported    int64  // when it was written; at Happened unless it is a task-sent or task-started
	Lost        bool   // it never arrives
	Execution   int    // number of the execution that it is about, the same for all its events; 0 if none is
	SentBy      int    // of a task-sent: number of the execution that published it, 0 for a client

	moment, report int32 // instants
}

// Ping is a remote control request and its reply.
type Ping struct {
	Process        clock.Process // that replied
	Clock          int64         // raw, in the reply's header
	Sent, Received int64         // by Umbel's clock
	Event          Instant       // when the reply was written
	Probed         int64         // when the worker was then sent the heartbeat command, 0 if it was not
}

// Instant is a point in the history that HappenedBefore compares.
type Instant int32

// Life is one life of a worker.
type Life struct {
	Process         clock.Process
	Host            string
	Began, Ended    int64 // Ended is 0 if it still lives at the end
	Crashed         bool  // it sent no worker-offline
	Accepted        int64 // tasks that it began
	MessagesDropped int64 // that it had received and not begun when it ended
}

// Moment is when what the event reports happened, Report when it was written.
func (e *Event) Moment() Instant { return Instant(e.moment) }

// Report is when the event was written.
func (e *Event) Report() Instant { return Instant(e.report) }

// Process is the process that the receiver takes the event to be of.
func (e *Event) Process() clock.Process {
	if e.Kind == state.TaskSent {
		return clock.Process{Hostname: e.Hostname}
	}
	return clock.Process{Hostname: e.Hostname, PID: e.PID}
}

// Arrived returns the numbers of the events that arrived, in order of arrival. A few are there twice.
func (h *History) Arrived() []int {
	var all []int
	for i := range h.Events {
		if !h.Events[i].Lost {
			all = append(all, i)
			if i%31 == 7 { // delivered again
				all = append(all, i)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Compare(h.Events[a].ReceivedMicros, h.Events[b].ReceivedMicros)
	})
	return all
}

// InBatches returns the events that arrive, in order of arrival, with ReceivedMicros as if nothing but a worker's batches and
// connections of different speed changed that order: a task event waits for up to half a second, which heartbeats overtake.
func (h *History) InBatches() []Event {
	rng := rand.New(rand.NewPCG(uint64(len(h.Events)), 1))
	all := slices.Clone(h.Events)
	free := map[clock.Process]int64{}  // when the batch of a process is sent
	speed := map[clock.Process]int64{} // time that its messages take, µs
	for i := range all {
		e := &all[i]
		p := e.Process()
		if e.Reported > free[p] {
			free[p] = e.Reported + rng.Int64N(sec/2)
		}
		if speed[p] == 0 {
			speed[p] = ms + rng.Int64N(3*sec)
		}
		e.ReceivedMicros = e.Reported + speed[p]
		if e.Kind.Task() {
			e.ReceivedMicros = free[p] + speed[p]
		}
	}
	all = slices.DeleteFunc(all, func(e Event) bool { return e.Lost })
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.ReceivedMicros, b.ReceivedMicros) })
	return all
}

// HappenedBefore reports whether a could have caused b: by the order of one process, by messages, by the delivery of
// a message again after its process had ended, or since one life of a worker followed another.
func (h *History) HappenedBefore(a, b Instant) bool {
	return a != b && h.past[b][a/64]&(1<<(a%64)) != 0
}

// close computes the past of every instant. Causes have smaller numbers.
func (h *History) close() {
	words := (len(h.causes) + 63) / 64
	bits := make([]uint64, words*len(h.causes))
	h.past = make([][]uint64, len(h.causes))
	for i, causes := range h.causes {
		own := bits[i*words : (i+1)*words]
		for _, c := range causes {
			own[c/64] |= 1 << (c % 64)
			for w, b := range h.past[c] {
				own[w] |= b
			}
		}
		h.past[i] = own
	}
}
