package ingest

import (
	"strings"

	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/state"
)

// maxCountedQueues bounds the queues, and the workers, whose messages are counted.
const maxCountedQueues = 500

// queueCounters counts the messages of queues since the start. Workers do not report from which queue they received a task:
// without an event of the client, it is counted by worker.
type queueCounters struct {
	queues   map[string]*queues.Counters
	unrouted map[string]*int64
}

func (q *queueCounters) add(e *state.Event, ch state.Change) {
	switch {
	case !ch.New:
	case e.Kind == state.TaskSent && ch.Queue != "":
		if c := counter(&q.queues, ch.Queue); c != nil {
			c.Sent++
		}
	case e.Kind == state.TaskReceived && ch.Queue != "":
		if c := counter(&q.queues, ch.Queue); c != nil {
			c.Received++
		}
	case e.Kind == state.TaskReceived:
		if n := counter(&q.unrouted, e.Hostname); n != nil {
			*n++
		}
	}
}

// counter returns the value of a key, a new one if there is none, nil if there are too many.
func counter[T any](all *map[string]*T, key string) *T {
	v := (*all)[key]
	if v != nil || len(*all) >= maxCountedQueues {
		return v
	}
	if *all == nil {
		*all = make(map[string]*T)
	}
	v = new(T)
	(*all)[strings.Clone(key)] = v // the strings of events are reused
	return v
}

// QueueCounters returns how many messages events have reported since the start, by queue, and by worker how many more were
// received from unknown queues.
func (in *Ingester) QueueCounters() (byQueue map[string]queues.Counters, unrouted map[string]int64) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	byQueue = make(map[string]queues.Counters, len(in.queueCounters.queues))
	for name, c := range in.queueCounters.queues {
		byQueue[name] = *c
	}
	unrouted = make(map[string]int64, len(in.queueCounters.unrouted))
	for name, n := range in.queueCounters.unrouted {
		unrouted[name] = *n
	}
	return byQueue, unrouted
}
