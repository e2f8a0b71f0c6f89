package monitor

import (
	"strings"

	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/state"
)

// maxFlows is of how many queues messages are counted; those of later ones are not.
const maxFlows = 500

// flows counts the messages of queues since the monitor began. Workers do not say from which queue they received a
// task, so that only those count whose client did.
type flows map[string]*queues.Flow

func (f *flows) add(e *state.Event, ch state.Change) {
	if !ch.New || ch.Queue == "" || (e.Kind != state.TaskSent && e.Kind != state.TaskReceived) {
		return
	}
	flow := (*f)[ch.Queue]
	if flow == nil {
		if len(*f) >= maxFlows {
			return
		}
		if *f == nil {
			*f = make(flows)
		}
		flow = new(queues.Flow)
		(*f)[strings.Clone(ch.Queue)] = flow // which is not ours to keep
	}
	if e.Kind == state.TaskSent {
		flow.Sent++
	} else {
		flow.Received++
	}
}

// Flow returns how many messages events have told of since the monitor began, by queue.
func (m *Monitor) Flow() map[string]queues.Flow {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make(map[string]queues.Flow, len(m.flows))
	for name, flow := range m.flows {
		all[name] = *flow
	}
	return all
}
