package queues

import "maps"

// Counters are totals of a queue since a fixed moment, counted from events.
type Counters struct {
	Sent     int64 // 0 if clients send no task-sent
	Received int64
}

// RouteCounters returns flows with what workers have received from unknown queues, since task-received names none:
// a message came from the queue that its worker consumes from, if that is just one. consumers are workers by
// queue.
func RouteCounters(flows map[string]Counters, unrouted map[string]int64, consumers map[string][]string) map[string]Counters {
	only := make(map[string]string) // queues by worker, empty if there are several
	for queue, workers := range consumers {
		for _, worker := range workers {
			if _, ok := only[worker]; ok {
				only[worker] = ""
			} else {
				only[worker] = queue
			}
		}
	}
	routed := maps.Clone(flows)
	if routed == nil {
		routed = make(map[string]Counters)
	}
	for worker, n := range unrouted {
		if queue := only[worker]; queue != "" {
			f := routed[queue]
			f.Received += n
			routed[queue] = f
		}
	}
	return routed
}
