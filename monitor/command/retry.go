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
	topology := s.Inspector.Topology(ctx)
	o, source = s.retryRequest(ctx, &t, topology, lookup{outbox: true, thorough: true})
	if o.Original.Workflow = s.related(ctx, &t); !seen && source == "" && o.Name == "" {
		return TaskRequest{}, "", s.unknownTask(ctx, "id", id)
	}
	return o, source, nil
}

// lookup says where to look for arguments.
type lookup struct {
	outbox   bool // Umbel may have published the task
	thorough bool // ask broker and worker even if the task has ended
}

// retryRequest returns the request that retries t, with its Original.
func (s *Service) retryRequest(ctx context.Context, t *state.Task, topology remote.Topology, where lookup) (TaskRequest, string) {
	o := TaskRequest{RetryOf: t.ID, Name: value(t.Name), Queue: queueOf(t, topology)}
	original := &Original{Unknown: parts()}
	original.Source = s.fillArguments(ctx, t, topology, where, &o, original)
	original.Request, o.Original = o, original
	return o, original.Source
}

// fillArguments sets the arguments from the first source that fully knows them, and returns that source.
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

// lookupOutbox looks for the task among the commands of the outbox.
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

// lookupBroker looks for the message in the queues that it may be in.
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
		original.Unknown = []string{partCallbacks} // stored beside the arguments
	}
	return err == nil && o.setArguments(m.Args, m.Kwargs)
}

// lookupWorker asks the worker that holds the task.
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

// lookupResult reads the arguments that result_extended has stored.
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
	if r.Name != "" { // events have the shadow name instead, if there is one
		o.Name = r.Name
	}
	if o.Queue == "" {
		o.Queue = r.Queue
	}
	return len(r.Args) > 0 && len(r.Kwargs) > 0 && !altered(t, r.Args, r.Kwargs) && o.setArguments(r.Args, r.Kwargs)
}
