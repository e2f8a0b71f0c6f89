package flower

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/web/auth"
)

// queueRoutes adds what is known of queues.
func (a *API) queueRoutes() {
	a.add(http.MethodGet, "/api/queues/length", auth.View, a.queueLengths)
}

const (
	queueTimeout = 5 * time.Second // for a look at queues
	defaultQueue = "celery"        // Celery's, if no worker tells of another
)

// queueLengths returns the queues that workers consume from: as objects of RabbitMQ's management API where it is configured and
// has counted the messages of all, else with what else is known, by name.
func (a *API) queueLengths(r *request) (any, error) {
	if a.Commands == nil {
		return nil, errUnavailable()
	}
	names := a.activeQueues(r.Context())
	ctx, cancel := context.WithTimeout(r.Context(), queueTimeout)
	defer cancel()
	if objects, err := a.Commands.Client.QueueObjects(ctx, names); err == nil && !slices.ContainsFunc(objects, uncounted) {
		return object{{"active_queues", objects}}, nil
	}
	s, err := a.Commands.Client.QueueStats(ctx, names)
	if err != nil {
		return nil, errUnavailable()
	}
	list := []object{}
	for _, name := range names {
		i := slices.IndexFunc(s.Queues, func(q broker.Queue) bool { return q.Name == name })
		switch {
		case i >= 0 && s.Queues[i].Error == "" && !s.Queues[i].Missing:
			list = append(list, queueObject(&s.Queues[i], s.Broker.Kind))
		case s.Broker.Kind == redisKind: // a list without elements does not exist
			list = append(list, object{{"name", name}, {"messages", 0}})
		}
	}
	return object{{"active_queues", list}}, nil
}

// uncounted reports whether a queue is too new for the statistics of RabbitMQ.
func uncounted(queue json.RawMessage) bool {
	var o struct{ Messages *int64 }
	return json.Unmarshal(queue, &o) != nil || o.Messages == nil
}

// redisKind is what broker.Info calls Redis.
const redisKind = "Redis"

// activeQueues returns the names of queues that workers consume from, sorted.
func (a *API) activeQueues(ctx context.Context) []string {
	var names []string
	for _, w := range a.inspections.all(ctx) {
		var consumed []struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(w.replies["active_queues"], &consumed) == nil {
			for _, q := range consumed {
				names = append(names, q.Name)
			}
		}
	}
	if len(names) == 0 {
		names = []string{defaultQueue}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// queueObject is a queue in Flower's form: with RabbitMQ, that of its management API, as far as it is known.
func queueObject(q *broker.Queue, kind string) object {
	var messages any
	if q.Ready != nil {
		n := *q.Ready
		if q.Unacked != nil && kind != redisKind {
			n += *q.Unacked
		}
		messages = n
	}
	o := object{{"name", q.Name}, {"messages", messages}}
	if kind == redisKind {
		return o
	}
	o = append(o, member{"messages_ready", q.Ready}, member{"messages_unacknowledged", q.Unacked}, member{"consumers", q.Consumers}, member{"durable", q.Durable})
	if q.Type != "" {
		o = append(o, member{"type", q.Type})
	}
	if q.State != "" {
		o = append(o, member{"state", q.State})
	}
	return o
}
