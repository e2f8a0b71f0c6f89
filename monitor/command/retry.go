package command

import (
	"bytes"
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
	"github.com/umbelhq/umbel/monitor/results"
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
	lookupTimeout = 2 * time.Second // for one source of arguments
	maxQueues     = 50              // that are searched for a message
)

// Retry returns the order that would run a task again as it was, with where its arguments are from: outbox, broker, worker,
// result backend, or event. Source is empty, and the arguments too, if they are not known in full.
func (s *Service) Retry(ctx context.Context, id string) (o TaskRequest, source string, err error) {
	t, err := s.tasks.Task(ctx, id)
	seen := err == nil
	if err != nil && !errors.Is(err, history.ErrNotFound) {
		return o, "", fmt.Errorf("look for task %s: %w", id, err)
	}
	t.ID = id
	topology := s.Inspector.Topology(ctx)
	o, source = s.retryRequest(ctx, &t, topology, lookup{outbox: true, thorough: true})
	if o.Original.Workflow = s.related(ctx, &t); !seen && source == "" && o.Name == "" {
		return TaskRequest{}, "", s.unknownTask(ctx, "id", id)
	}
	return o, source, nil
}

// lookup says where arguments may be.
type lookup struct {
	outbox   bool // Umbel may have published the task
	thorough bool // its message may be with the broker or a worker although it is finished
}

// repeat returns the order that would run t again, with its Original.
func (s *Service) retryRequest(ctx context.Context, t *state.Task, topology remote.Topology, where lookup) (TaskRequest, string) {
	o := TaskRequest{RetryOf: t.ID, Name: value(t.Name), Queue: queueOf(t, topology)}
	original := &Original{Unknown: parts()}
	original.Source = s.fillArguments(ctx, t, topology, where, &o, original)
	original.Request, o.Original = o, original
	return o, original.Source
}

// source fills in what the first source knows that knows the arguments in full, and says which that is.
func (s *Service) fillArguments(
	ctx context.Context, t *state.Task, topology remote.Topology, where lookup, o *TaskRequest, original *Original,
) string {
	if where.outbox && s.lookupOutbox(ctx, t, o, original) {
		return fromOutbox
	}
	if where.thorough || !t.State.Final() {
		if s.lookupBroker(ctx, t, topology, o, original) {
			return fromBroker
		}
		if s.lookupWorker(ctx, t, o, original) {
			return fromWorker
		}
	}
	if s.lookupResult(ctx, t, o, original) {
		return fromResult
	}
	if !t.Truncated && t.Args != nil && t.Kwargs != nil {
		args, ok := celery.ParseRepr(*t.Args)
		kwargs, full := celery.ParseRepr(*t.Kwargs)
		if ok && full && o.setArguments(args, kwargs) {
			return fromEvent
		}
	}
	return ""
}

// take sets the arguments, if they are an array and an object.
func (o *TaskRequest) setArguments(args, kwargs json.RawMessage) bool {
	args, kwargs = bytes.TrimSpace(args), bytes.TrimSpace(kwargs)
	if !bytes.HasPrefix(args, []byte("[")) || !bytes.HasPrefix(kwargs, []byte("{")) || !json.Valid(args) || !json.Valid(kwargs) {
		return false
	}
	o.Args, o.Kwargs = args, kwargs
	return true
}

// value is s, empty if it is not known.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// queueOf returns the queue of a task: as it was sent, or else the only one that its worker, or those that have the task,
// consume from, or else Celery's own if that is one of them. It is empty if none of that is known.
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

// askOutbox looks whether Umbel has published the task itself.
func (s *Service) lookupOutbox(ctx context.Context, t *state.Task, o *TaskRequest, original *Original) bool {
	list, _, err := s.outbox.Commands(ctx, history.CommandFilter{TaskID: t.ID, Kind: kindTask, Limit: 1})
	if err != nil || len(list) == 0 {
		return false
	}
	var p taskPayload
	if decode(list[0], &p) != nil || p.ID != t.ID || !o.setArguments(p.Args, p.Kwargs) {
		return false
	}
	o.Name, o.Queue, o.Priority, o.Hard, o.Soft = p.Name, p.Queue, p.Priority, p.Hard, p.Soft
	original.carryOver(p.message(), t.State, s.now())
	return true
}

// askBroker looks for the message in the queues that it may be in.
func (s *Service) lookupBroker(ctx context.Context, t *state.Task, topology remote.Topology, o *TaskRequest, original *Original) bool {
	queues := []string{o.Queue}
	if o.Queue == "" {
		queues = keys(topology.Queues)
	}
	if !slices.Contains(queues, defaultQueue) {
		queues = append(queues, defaultQueue)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	p, err := s.Client.Find(ctx, queues[:min(len(queues), maxQueues)], t.ID)
	if err != nil || p == nil {
		return false
	}
	m, err := celery.ParseMessage(*p)
	if m.ID != t.ID {
		return false
	}
	o.Name, o.Hard, o.Soft, o.Priority = m.Name, m.Hard, m.Soft, m.Priority
	original.carryOver(m, t.State, s.now())
	if err != nil {
		original.Unknown = []string{partCallbacks} // they are where the arguments are
	}
	return err == nil && o.setArguments(m.Args, m.Kwargs)
}

// askWorker asks the worker that holds the task.
func (s *Service) lookupWorker(ctx context.Context, t *state.Task, o *TaskRequest, original *Original) bool {
	worker := value(t.Worker)
	if worker == "" || t.State.Final() || s.workers()[worker].Status != state.Online {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	answers, err := s.Client.Call(ctx, remote.Request{
		Method: "query_task", Arguments: map[string]any{"ids": []string{t.ID}}, Destination: []string{worker}, Timeout: lookupTimeout,
	})
	if err != nil || len(answers.Items) != 1 {
		return false
	}
	var held map[string][]json.RawMessage
	if json.Unmarshal(answers.Items[0].Value, &held) != nil || len(held[t.ID]) != 2 {
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
	if json.Unmarshal(held[t.ID][1], &info) != nil || info.Type == "" || altered(t, info.Args, info.Kwargs) {
		return false
	}
	if !o.setArguments(info.Args, info.Kwargs) {
		return false
	}
	o.Name = info.Type
	if slices.Contains(original.Unknown, partPriority) {
		o.Priority, original.Unknown = info.Delivery.Priority, []string{partLimits, partHeaders, partCallbacks}
	}
	if info.Delivery.Exchange != nil && *info.Delivery.Exchange == "" && info.Delivery.RoutingKey != "" {
		o.Queue = info.Delivery.RoutingKey
	}
	return true
}

// altered reports whether arguments may have lost something when they were made JSON that every reader takes: there NaN
// and infinities are null, and what is no text is U+FFFD.
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

// askResult reads the arguments where result_extended has stored them.
func (s *Service) lookupResult(ctx context.Context, t *state.Task, o *TaskRequest, original *Original) bool {
	if s.Results == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var r results.Result
	r, err := s.Results.Result(ctx, t.ID)
	if err != nil {
		return false
	}
	original.Group = original.Group || r.GroupID != ""
	if r.Name != "" { // an event has the name that is shown in its place, if there is one
		o.Name = r.Name
	}
	if o.Queue == "" {
		o.Queue = r.Queue
	}
	return len(r.Args) > 0 && len(r.Kwargs) > 0 && !altered(t, r.Args, r.Kwargs) && o.setArguments(r.Args, r.Kwargs)
}
