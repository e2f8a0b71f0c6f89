package ingest

import (
	"strings"

	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/state"
)

// maxFlows is of how many queues, and of how many workers, messages are counted; those of later ones are not.
const maxCountedQueues = 500

// flows counts the messages of queues since the monitor began. Workers do not say from which queue they received a
// task: what no client has told of is counted by worker.
type queueCounters struct {
	queues   map[string]*queues.Counters
	unrouted map[string]*int64
}

func (f *queueCounters) add(e *state.Event, ch state.Change) {
	switch {
	case !ch.New:
	case e.Kind == state.TaskSent && ch.Queue != "":
		if flow := counter(&f.queues, ch.Queue); flow != nil {
			flow.Sent++
		}
	case e.Kind == state.TaskReceived && ch.Queue != "":
		if flow := counter(&f.queues, ch.Queue); flow != nil {
			flow.Received++
		}
	case e.Kind == state.TaskReceived:
		if n := counter(&f.unrouted, e.Hostname); n != nil {
			*n++
		}
	}
}

// counter returns the value of a key, a new one if need be, nil if there are too many.
func counter[T any](all *map[string]*T, key string) *T {
	v := (*all)[key]
	if v != nil || len(*all) >= maxCountedQueues {
		return v
	}
	if *all == nil {
		*all = make(map[string]*T)
	}
	v = new(T)
	(*all)[strings.Clone(key)] = v // which is not ours to keep
	return v
}

// Flow returns how many messages events have told of since the monitor began, by queue, and how many more each worker
// has received from queues that nobody told of.
func (in *Ingester) QueueCounters() (byQueue map[string]queues.Counters, unrouted map[string]int64) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	byQueue = make(map[string]queues.Counters, len(in.queueCounters.queues))
	for name, flow := range in.queueCounters.queues {
		byQueue[name] = *flow
	}
	unrouted = make(map[string]int64, len(in.queueCounters.unrouted))
	for name, n := range in.queueCounters.unrouted {
		unrouted[name] = *n
	}
	return byQueue, unrouted
}
