package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// selectByID selects among the tasks of the request.
func (s *Service) selectByID(ctx context.Context, p *bulkPlan) error {
	known := make(map[string]bool, len(p.request.IDs))
	held := s.Inspector.Holders(p.request.IDs...)
	var list []state.Task
	for _, id := range p.request.IDs {
		if known[id] {
			continue
		}
		known[id] = true
		t, err := s.tasks.Task(ctx, id)
		h, ok := held[id]
		switch {
		case errors.Is(err, history.ErrNotFound) && ok && p.request.Action != actRetry:
			list = append(list, heldTask(id, h))
		case errors.Is(err, history.ErrNotFound):
			p.block(noSuchTask, id)
		case err != nil:
			return fmt.Errorf("look for task %s: %w", id, err)
		default:
			list = append(list, t)
		}
	}
	p.matched = history.Count{N: len(known), Exact: true}
	return s.selectTasks(ctx, p, list)
}

// selectByQuery selects among the tasks that a query matches, up to the cap.
func (s *Service) selectByQuery(ctx context.Context, p *bulkPlan) error {
	var err error
	if p.matched, err = s.tasks.Count(ctx, p.request.Query); err != nil {
		return fmt.Errorf("count tasks: %w", err)
	}
	known := make(map[string]bool)
	r := history.TaskRequest{Query: p.request.Query, Limit: pageSize, Now: s.now()}
	for !p.capped {
		page, err := s.tasks.Tasks(ctx, r)
		if err != nil {
			return fmt.Errorf("read tasks: %w", err)
		}
		fresh := slices.DeleteFunc(page.Tasks, func(t state.Task) bool { return known[t.ID] })
		for i := range fresh {
			known[fresh[i].ID] = true
		}
		if err := s.selectTasks(ctx, p, fresh); err != nil {
			return err
		}
		if page.Next == nil {
			return nil
		}
		r.From = page.Next
		p.capped = p.capped || len(known) >= maxScanned
	}
	return nil
}

// selectTasks selects or blocks each task.
func (s *Service) selectTasks(ctx context.Context, p *bulkPlan, list []state.Task) error {
	if p.request.Action == actRetry {
		for part := range slices.Chunk(list, pageSize) {
			if err := s.selectRetries(ctx, p, part); err != nil || p.capped {
				return err
			}
		}
		return nil
	}
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	held := s.Inspector.Holders(ids...)
	for i := range list {
		t := &list[i]
		worker := cmp.Or(held[t.ID].Node, value(t.Worker))
		pool := strings.ToLower(p.topology.Pools[worker].Kind)
		if reason := ineligible(p.request.Action, t, held[t.ID], p.workers[worker], pool); reason != "" {
			p.block(reason, t.ID)
			continue
		}
		if !p.add(t) {
			return nil
		}
		p.pools[pool]++
	}
	return nil
}

// add selects a task unless the cap is reached.
func (p *bulkPlan) add(t *state.Task) bool {
	if len(p.selected) == p.request.Cap {
		p.capped = true
		return false
	}
	p.selected = append(p.selected, t.ID)
	p.states[t.State]++
	return true
}

// selectRetries selects or blocks tasks to retry, looking up the arguments of several at a time.
func (s *Service) selectRetries(ctx context.Context, p *bulkPlan, list []state.Task) error {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	published, err := s.outbox.TasksWithCommands(ctx, kindTask, ids)
	if err != nil {
		return fmt.Errorf("look for arguments: %w", err)
	}
	requests := make([]TaskRequest, len(list))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(lookups)
	for i := range list {
		if !list[i].State.Final() {
			continue
		}
		g.Go(func() error {
			requests[i] = s.retryRequest(inner, &list[i], p.topology, slices.Contains(published, ids[i]), false)
			return inner.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("look for arguments: %w", err)
	}
	for i := range list {
		t, o := &list[i], requests[i]
		payload, reason := s.retryPayload(ctx, p, t, o)
		if reason != "" {
			p.block(reason, t.ID)
			continue
		}
		if p.bytes += len(payload.Args) + len(payload.Kwargs); p.bytes > maxBytes {
			p.capped = true
			return nil
		}
		if !p.add(t) {
			return nil
		}
		p.retries, p.originals = append(p.retries, payload), append(p.originals, o.Original)
	}
	return nil
}

// retryPayload returns the message that retries a task, or why there is none.
func (s *Service) retryPayload(ctx context.Context, p *bulkPlan, t *state.Task, o TaskRequest) (taskPayload, string) {
	switch {
	case !t.State.Final():
		return taskPayload{}, "not finished"
	case o.Name == "":
		return taskPayload{}, "name not known"
	case o.Original.Source == "":
		if why := p.complete(t, &o); why != "" {
			return taskPayload{}, why
		}
	}
	if o.Queue == "" {
		return taskPayload{}, noQueue
	}
	for _, problem := range placement(p.topology, o.Name, o.Queue) {
		if problem.err != nil {
			return taskPayload{}, problem.err.Message
		}
	}
	payload, err := s.payload(ctx, o)
	if err == nil {
		_, err = payload.message().Publishing(s.now())
	}
	if err != nil {
		return taskPayload{}, "cannot be published: " + err.Error()
	}
	return payload, ""
}

// block records why a task is not selected.
func (p *bulkPlan) block(reason, id string) {
	i := slices.IndexFunc(p.blocked, func(b Blocked) bool { return b.Reason == reason })
	if i < 0 {
		i = len(p.blocked)
		objects := reason == notInJSON
		p.blocked = append(p.blocked, Blocked{
			Reason: reason, Remedy: remedy(reason), Objects: objects, Typed: objects || reason == notKnown || reason == notCertain,
		})
	}
	b := &p.blocked[i]
	b.N++
	if len(b.IDs) < maxNamed {
		b.IDs = append(b.IDs, id)
	}
}
