package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// Actions of a BulkRequest.
const (
	actRevoke    = "revoke"
	actTerminate = "terminate"
	actRetry     = "retry"
)

const (
	defaultSignal = "SIGTERM"
	chunk         = 100              // ids per command
	pageSize      = 500              // tasks read at once
	maxScanned    = 50_000           // tasks read for one query
	maxNamed      = 5                // ids listed with a reason
	unconfirmed   = 100              // tasks above which a confirmation must be typed
	revokeTime    = 10 * time.Minute // that revocations may wait: each is about one task, so it does no harm late
	lookups       = 8                // tasks whose arguments are looked up at once
	maxBytes      = 64 << 20         // of the arguments of all retried tasks

	noSuchTask = "no such task" // a reason not to act on one
)

// bulkPlan is a checked BulkRequest with the tasks that it selects.
type bulkPlan struct {
	request   BulkRequest
	args      map[string]any // of every command to workers, without the ids
	selected  []string
	retries   []taskPayload
	originals []*Original // of the retries
	again     int         // of the retried tasks, how many have been retried before
	bytes     int         // of their arguments
	blocked   []Blocked   // in the order of their first task
	states    map[state.State]int
	matched   history.Count
	capped    bool
	workers   map[string]state.Worker
	topology  remote.Topology
	pools     map[string]int // tasks to terminate, by the kind of the pool that they run in, empty if unknown
}

// PreviewBulk checks a request and returns what it would do.
func (s *Service) PreviewBulk(ctx context.Context, o BulkRequest) (BulkPreview, error) {
	p, err := s.planBulk(ctx, o)
	if err != nil {
		return BulkPreview{}, err
	}
	return p.preview(), nil
}

// Bulk enqueues the commands of a request.
func (s *Service) Bulk(ctx context.Context, caller Caller, o BulkRequest) (Receipt, error) {
	same := map[string]any{
		"action": o.Action, "ids": o.IDs, "q": o.Query.String(), "signal": o.Signal, "cap": o.Cap,
		"objects": o.Objects, "args": string(o.Args), "kwargs": string(o.Kwargs),
	}
	return s.submit(ctx, caller, draft{action: o.Action, identity: same}, func(d *draft) error {
		p, err := s.planBulk(ctx, o)
		if err != nil {
			return err
		}
		if len(p.selected) == 0 {
			return s.refusal(ctx, p)
		}
		v := p.preview()
		d.target, d.warnings = v.Summary, v.Warnings
		detail := map[string]any{
			"q": o.Query.String(), "ids": o.IDs[:min(len(o.IDs), chunk)], "signal": o.Signal, "cap": o.Cap,
			"chosen": v.Selected, "states": v.States, "blocked": v.Blocked, "capped": v.Capped,
		}
		if o.Objects {
			detail["objects"] = true
		}
		for name, typed := range map[string]json.RawMessage{"args": o.Args, "kwargs": o.Kwargs} {
			if typed != nil {
				detail[name] = recorded(s.redactor, typed)
			}
		}
		d.detail = detail
		d.commands, err = p.commands(s.now())
		return err
	})
}

// planBulk selects the tasks of a request and records why others are blocked.
func (s *Service) planBulk(ctx context.Context, o BulkRequest) (*bulkPlan, error) {
	p := &bulkPlan{request: o, states: make(map[state.State]int), workers: s.workers(), pools: make(map[string]int)}
	if err := p.check(); err != nil {
		return nil, err
	}
	if o.Action != actRevoke {
		p.topology = s.Inspector.Topology(ctx)
	}
	choose := s.selectByQuery
	if len(o.IDs) > 0 {
		choose = s.selectByID
	}
	if err := choose(ctx, p); err != nil {
		return p, err
	}
	var err error
	if o.Action == actRetry {
		p.again, err = s.retriedBefore(ctx, p.selected)
	}
	return p, err
}

// check validates the request itself.
func (p *bulkPlan) check() error {
	o := &p.request
	switch o.Action {
	case actRevoke, actRetry:
		if o.Signal != "" {
			return &Error{Field: "signal", Message: "signal is for terminate only"}
		}
	case actTerminate:
		o.Signal = cmp.Or(o.Signal, defaultSignal)
	}
	o.Cap = cmp.Or(o.Cap, DefaultCap)
	if len(o.IDs) > MaxCap {
		return &Error{Field: "ids", Message: fmt.Sprintf("ids must be at most %d", MaxCap)}
	}
	if o.Action == actRetry {
		return o.checkTyped()
	}
	if o.Objects || o.Args != nil || o.Kwargs != nil {
		return &Error{Field: "args", Message: "arguments are for retry only"}
	}
	args := map[string]any{"task_id": []any{"id"}}
	if o.Action == actTerminate {
		args["terminate"], args["signal"] = true, o.Signal
	}
	m, _ := remote.Lookup(actRevoke)
	checked, err := checkArguments(m, args)
	if wrong, ok := errors.AsType[*Error](err); ok {
		wrong.Field = strings.TrimPrefix(wrong.Field, "arguments.")
	}
	p.args = checked
	return err
}

// commands returns one command for each retried task, or one broadcast for each hundred tasks.
func (p *bulkPlan) commands(now time.Time) ([]history.Command, error) {
	var commands []history.Command
	for _, payload := range p.retries {
		c, err := payload.command()
		if err != nil {
			return nil, err
		}
		commands = append(commands, c)
	}
	if p.request.Action == actRetry {
		return commands, nil
	}
	for ids := range slices.Chunk(p.selected, chunk) {
		args := maps.Clone(p.args)
		list := make([]any, len(ids))
		for i, id := range ids {
			list[i] = id
		}
		args["task_id"] = list
		c, err := controlCommand(actRevoke, args, nil, now.Add(revokeTime))
		if err != nil {
			return nil, err
		}
		c.Summary = revocation(actRevoke, args)
		commands = append(commands, c)
	}
	return commands, nil
}

// refusal returns why nothing is enqueued.
func (s *Service) refusal(ctx context.Context, p *bulkPlan) error {
	if len(p.blocked) == 0 {
		return &Error{Kind: Conflict, Message: "no task matches"}
	}
	if len(p.request.IDs) == 1 && p.blocked[0].Reason == noSuchTask {
		return s.unknownTask(ctx, "ids[0]", p.request.IDs[0])
	}
	var why []string
	for _, b := range p.blocked {
		why = append(why, fmt.Sprintf("%s (%d)", b.Reason, b.N))
	}
	return &Error{Kind: Conflict, Message: fmt.Sprintf("nothing to %s: %s", p.request.Action, strings.Join(why, "; "))}
}

// preview returns what the plan does.
func (p *bulkPlan) preview() BulkPreview {
	v := BulkPreview{Matched: p.matched, Selected: len(p.selected), States: p.states, Blocked: p.blocked, Capped: p.capped}
	what := count(len(p.selected), "task", "tasks")
	switch p.request.Action {
	case actRevoke:
		v.Summary, v.Targets = "Revoke "+what, []string{everyWorker}
	case actTerminate:
		v.Summary, v.Targets = fmt.Sprintf("Terminate %s with %s", what, p.request.Signal), []string{everyWorker}
	case actRetry:
		v.Summary = fmt.Sprintf("Run %s again", what)
		for _, payload := range p.retries {
			if queue := "queue " + payload.Queue; !slices.Contains(v.Targets, queue) {
				v.Targets = append(v.Targets, queue)
			}
		}
	}
	v.Warnings = p.warnings()
	if p.request.Action == actTerminate || len(p.selected) > unconfirmed {
		v.Confirm = p.request.Action
	}
	return v
}

// warnings returns the consequences of the plan.
func (p *bulkPlan) warnings() []Warning {
	var list warnings
	online := 0
	for _, w := range p.workers {
		if w.Status == state.Online {
			online++
		}
	}
	switch {
	case p.request.Action == actRetry:
		if p.again > 0 {
			list.warn(true, "Retried before: %d of these tasks.", p.again)
		}
		list = append(list, retryWarnings(p.originals)...)
	case online == 0:
		list.warn(true, "No worker is online to receive this.")
	case p.request.Action == actRevoke:
		list.warn(false, "Workers keep revoked ids in memory: a worker that restarts before a task reaches it runs the task, "+
			"unless another worker repeats the revocation or it has a --statedb.")
	default:
		list = p.termination()
	}
	if p.capped {
		list.warn(true, "More tasks match than these: the cap is %d tasks, and 64 MiB of arguments.", p.request.Cap)
	}
	return list
}
