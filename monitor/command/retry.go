package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// Sources of arguments.
const (
	fromOutbox = "outbox"
	fromBroker = "broker"
	fromWorker = "worker"
	fromResult = "result backend"
	fromEvent  = "event"
)

const (
	lookupTimeout = 2 * time.Second // per source of arguments
	maxQueues     = 50              // searched for a message
)

// Retry returns the request that retries a task unchanged, and the source of its arguments: outbox, broker, worker, result
// backend, or event. Source and arguments are empty if the arguments are not fully known.
func (s *Service) Retry(ctx context.Context, id string) (o TaskRequest, source string, err error) {
	t, err := s.tasks.Task(ctx, id)
	seen := err == nil
	if err != nil && !errors.Is(err, history.ErrNotFound) {
		return o, "", fmt.Errorf("look for task %s: %w", id, err)
	}
	t.ID = id
	o = s.retryRequest(ctx, &t, s.Inspector.Topology(ctx), true, true)
	if o.Original.Workflow = s.related(ctx, &t); !seen && o.Original.Source == "" && o.Name == "" {
		return TaskRequest{}, "", s.unknownTask(ctx, "id", id)
	}
	return o, o.Original.Source, nil
}

// lookup looks for the message of a task to retry.
type lookup struct {
	*Service

	task     *state.Task
	topology remote.Topology
	request  TaskRequest
	original *Original
}

// retryRequest returns the request that retries t, with its Original. The arguments are those of the first source that
// fully knows them. published says that Umbel may have published the task, thorough that broker and worker are asked
// even if the task has ended.
func (s *Service) retryRequest(ctx context.Context, t *state.Task, topology remote.Topology, published, thorough bool) TaskRequest {
	l := &lookup{
		Service: s, task: t, topology: topology, original: &Original{Unknown: parts()},
		request: TaskRequest{RetryOf: t.ID, Name: value(t.Name), Queue: queueOf(t, topology)},
	}
	thorough = thorough || !t.State.Final()
	for _, source := range []struct {
		name string
		use  bool
		find func(context.Context) bool
	}{
		{fromOutbox, published, l.fromOutbox},
		{fromBroker, thorough, l.fromBroker},
		{fromWorker, thorough, l.fromWorker},
		{fromResult, s.results != nil, l.fromResult},
		{fromEvent, true, l.fromEvent},
	} {
		if source.use && source.find(ctx) {
			l.original.Source = source.name
			break
		}
	}
	if l.request.Serializer == "" {
		l.request.Serializer = s.serializerOf(l.request.Name)
	}
	l.original.Request, l.request.Original = l.request, l.original
	return l.request
}

// setArguments sets the arguments if they are an array and an object.
func (o *TaskRequest) setArguments(args, kwargs json.RawMessage) bool {
	args, kwargs = bytes.TrimSpace(args), bytes.TrimSpace(kwargs)
	if !bytes.HasPrefix(args, []byte("[")) || !bytes.HasPrefix(kwargs, []byte("{")) || !json.Valid(args) || !json.Valid(kwargs) {
		return false
	}
	o.Args, o.Kwargs = args, kwargs
	return true
}

// value returns *s, empty if s is nil.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// QueueOf returns the queue that workers which have registered a task consume from: the only one, else Celery's default. It
// does not wait for workers.
func (s *Service) QueueOf(name string) string {
	return cmp.Or(queueOf(&state.Task{Name: &name}, s.Inspector.PeekTopology()), defaultQueue)
}

// queueOf returns the queue of a task: that it was sent to; else the only one that its worker, or the workers that have
// registered it, consume from; else Celery's default if that is one of them; else empty.
func queueOf(t *state.Task, topology remote.Topology) string {
	if q := value(t.Queue); q != "" {
		return q
	}
	if value(t.Exchange) == "" && value(t.RoutingKey) != "" {
		return value(t.RoutingKey)
	}
	workers := topology.Tasks[value(t.Name)]
	if w := value(t.Worker); w != "" {
		workers = []string{w}
	}
	var list []string
	for queue, consumers := range topology.Queues {
		if slices.ContainsFunc(workers, func(w string) bool { return slices.Contains(consumers, w) }) {
			list = append(list, queue)
		}
	}
	switch {
	case len(list) == 1:
		return list[0]
	case slices.Contains(list, defaultQueue):
		return defaultQueue
	}
	return ""
}

// fromOutbox looks for the task among the commands of the outbox.
func (l *lookup) fromOutbox(ctx context.Context) bool {
	p, ok := l.published(ctx, l.task.ID)
	if !ok || p.Redacted || !l.request.setArguments(p.Args, p.Kwargs) {
		return false
	}
	o := &l.request
	o.Name, o.Queue, o.Priority, o.Hard, o.Soft = p.Name, p.Queue, p.Priority, p.Hard, p.Soft
	o.Serializer = l.asWritten(o.Name, p.Serializer)
	l.original.carryOver(p.message(), l.task.State, l.now())
	return true
}

// published returns the message of a task that was published through the outbox.
func (s *Service) published(ctx context.Context, id string) (p taskPayload, ok bool) {
	list, _, err := s.outbox.Commands(ctx, history.CommandFilter{TaskID: id, Kind: kindTask, Limit: 1})
	ok = err == nil && len(list) > 0 && decode(list[0], &p) == nil && p.ID == id
	return p, ok
}

// fromBroker looks for the message in the queues that it may be in.
func (l *lookup) fromBroker(ctx context.Context) bool {
	o := &l.request
	queues := []string{o.Queue}
	if o.Queue == "" {
		queues = keys(l.topology.Queues)
	}
	if !slices.Contains(queues, defaultQueue) {
		queues = append(queues, defaultQueue)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	p, err := l.Client.Find(ctx, queues[:min(len(queues), maxQueues)], l.task.ID)
	if err != nil || p == nil {
		return false
	}
	m, err := celery.ParseMessage(*p)
	if m.ID != l.task.ID {
		return false
	}
	o.Name, o.Hard, o.Soft, o.Priority = m.Name, m.HardLimit, m.SoftLimit, m.Priority
	o.Serializer = l.asWritten(o.Name, m.Serializer)
	l.original.carryOver(m, l.task.State, l.now())
	if err != nil {
		l.original.Unknown = []string{partCallbacks} // stored beside the arguments
	}
	return err == nil && o.setArguments(m.Args, m.Kwargs)
}

// fromWorker asks the worker that holds the task.
func (l *lookup) fromWorker(ctx context.Context) bool {
	id, worker := l.task.ID, value(l.task.Worker)
	if worker == "" || l.task.State.Final() || l.workers()[worker].Status != state.Online {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	replies, err := l.Client.Call(ctx, remote.Request{
		Method: "query_task", Arguments: map[string]any{"ids": []string{id}}, Destination: []string{worker}, Timeout: lookupTimeout,
	})
	if err != nil || len(replies.Items) != 1 {
		return false
	}
	var found map[string][]json.RawMessage
	if json.Unmarshal(replies.Items[0].Value, &found) != nil || len(found[id]) != 2 {
		return false
	}
	var info struct {
		Type     string          `json:"type"`
		Args     json.RawMessage `json:"args"`
		Kwargs   json.RawMessage `json:"kwargs"`
		Delivery struct {
			Exchange   *string `json:"exchange"`
			RoutingKey string  `json:"routing_key"`
			Priority   *uint8  `json:"priority"`
		} `json:"delivery_info"`
	}
	o := &l.request
	if json.Unmarshal(found[id][1], &info) != nil || info.Type == "" || altered(l.task, info.Args, info.Kwargs) ||
		!o.setArguments(info.Args, info.Kwargs) {
		return false
	}
	o.Name = info.Type
	if slices.Contains(l.original.Unknown, partPriority) {
		o.Priority, l.original.Unknown = info.Delivery.Priority, []string{partLimits, partHeaders, partCallbacks}
	}
	if info.Delivery.Exchange != nil && *info.Delivery.Exchange == "" && info.Delivery.RoutingKey != "" {
		o.Queue = info.Delivery.RoutingKey
	}
	return true
}

// altered reports whether arguments may have been altered when they were encoded as strict JSON: NaN and infinities become
// null, and bytes that are not UTF-8 become U+FFFD.
func altered(t *state.Task, args, kwargs json.RawMessage) bool {
	all := string(args) + string(kwargs)
	if strings.Contains(all, "\uFFFD") || strings.Contains(all, `\ufffd`) {
		return true
	}
	if !strings.Contains(all, "null") {
		return false
	}
	if t.Args == nil || t.Kwargs == nil || t.Truncated {
		return true
	}
	shown := *t.Args + *t.Kwargs
	return strings.Contains(shown, "nan") || strings.Contains(shown, "inf") || strings.Contains(shown, "...")
}

// fromResult reads the arguments that result_extended has stored.
func (l *lookup) fromResult(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	r, err := l.results.Result(ctx, l.task.ID)
	if err != nil {
		return false
	}
	o := &l.request
	l.original.Group = l.original.Group || r.GroupID != ""
	o.Name = cmp.Or(r.Name, o.Name) // events have the shadow name instead, if there is one
	o.Queue = cmp.Or(o.Queue, r.Queue)
	return len(r.Args) > 0 && len(r.Kwargs) > 0 && !altered(l.task, r.Args, r.Kwargs) && o.setArguments(r.Args, r.Kwargs)
}

// fromEvent parses the arguments that events show.
func (l *lookup) fromEvent(context.Context) bool {
	t := l.task
	if t.Truncated || t.Args == nil || t.Kwargs == nil {
		return false
	}
	args, ok := celery.ParseRepr(*t.Args)
	kwargs, full := celery.ParseRepr(*t.Kwargs)
	return ok && full && l.request.setArguments(args, kwargs)
}
