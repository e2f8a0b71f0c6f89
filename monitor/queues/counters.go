package queues

import "maps"

// Counters are totals of a queue since a fixed moment, counted from events.
type Counters struct {
	Sent     int64 // 0 if clients send no task-sent
	Received int64
}

// RouteCounters adds what workers have received from unknown queues to the counters of queues: task-received names no
// queue, so a message counts for the one that its worker consumes from, if there is just one. consumers are workers by
// queue.
func RouteCounters(byQueue map[string]Counters, unrouted map[string]int64, consumers map[string][]string) map[string]Counters {
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
	routed := maps.Clone(byQueue)
	if routed == nil {
		routed = make(map[string]Counters)
	}
	for worker, n := range unrouted {
		if queue := only[worker]; queue != "" {
			c := routed[queue]
			c.Received += n
			routed[queue] = c
		}
	}
	return routed
}
