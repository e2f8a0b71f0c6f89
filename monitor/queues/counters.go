package queues

import "maps"

// Flow is what events tell of a queue, counted since some moment that stays.
type Counters struct {
	Sent     int64 // 0 where clients send no task-sent
	Received int64
}

// Route returns flows with what workers have received from queues that nobody told of, which workers do not tell
// either: it came from the queue that a worker consumes from, if that is just one. consumers are workers by queue.
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
