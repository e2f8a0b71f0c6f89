package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// everyWorker is the target of a broadcast.
const everyWorker = "every worker"

// controlPlan is a checked ControlRequest.
type controlPlan struct {
	method  remote.Method
	args    map[string]any
	workers []string // empty is every worker
	expires time.Time
}

// PreviewControl checks a request and returns what it would do.
func (s *Service) PreviewControl(ctx context.Context, o ControlRequest) (Preview, error) {
	p, err := s.planControl(o)
	if err != nil {
		return Preview{}, err
	}
	return s.previewControl(ctx, p), nil
}

// Control enqueues one command for each worker in the request, or one broadcast.
func (s *Service) Control(ctx context.Context, caller Caller, o ControlRequest) (Receipt, error) {
	d := draft{action: o.Method, identity: o, target: targets(o.Workers), detail: o}
	return s.submit(ctx, caller, d, func(d *draft) error {
		p, err := s.planControl(o)
		if err != nil {
			return err
		}
		if !o.NoWarnings {
			d.warnings = s.previewControl(ctx, p).Warnings
		}
		if p.method.Steps {
			d.commands, err = s.stepCommands(ctx, p)
		} else {
			d.commands, err = p.commands()
		}
		return err
	})
}

// planControl checks the method, its arguments and the names of workers.
func (s *Service) planControl(o ControlRequest) (p controlPlan, err error) {
	m, ok := remote.Lookup(o.Method)
	if !ok {
		message := fmt.Sprintf("there is no method %.100q", o.Method)
		if why := remote.Refused(o.Method); why != "" {
			message = fmt.Sprintf("%s is not offered: %s", o.Method, why)
		}
		return p, &Error{Field: "method", Message: message, Nearest: remote.Nearest(o.Method)}
	}
	p.method = m
	if p.args, err = checkArguments(m, o.Arguments); err != nil {
		return p, err
	}
	p.expires = s.now().Add(cmp.Or(o.Expires, defaultExpires))
	known := s.workers()
	for i, name := range o.Workers {
		if _, ok := known[name]; !ok {
			return p, &Error{
				Kind: NotFound, Field: fmt.Sprintf("workers[%d]", i), Message: fmt.Sprintf("there is no worker %.255q", name),
				Nearest: query.Nearest(name, names(known)),
			}
		}
		if !slices.Contains(p.workers, name) {
			p.workers = append(p.workers, name)
		}
	}
	if p.method.Steps && len(p.workers) == 0 { // each worker is drained by itself
		if p.workers = s.alive(); len(p.workers) == 0 {
			return p, &Error{Kind: Conflict, Message: "no worker is online"}
		}
	}
	return p, nil
}

// checkArguments checks the arguments of a method.
func checkArguments(m remote.Method, args map[string]any) (map[string]any, error) {
	checked, err := m.Check(args)
	if wrong, ok := errors.AsType[*remote.ArgumentError](err); ok {
		field := "arguments"
		if wrong.Argument != "" {
			field += "." + wrong.Argument
		}
		return nil, &Error{Field: field, Message: wrong.Error(), Nearest: wrong.Nearest}
	}
	return checked, err
}

// workers returns all workers by name.
func (s *Service) workers() map[string]state.Worker {
	known := make(map[string]state.Worker)
	s.tasks.View(func(c state.View) {
		for _, w := range c.Workers() {
			known[w.Name] = w
		}
	})
	return known
}

// names returns the names of workers in order.
func names(workers map[string]state.Worker) []string {
	return slices.Sorted(maps.Keys(workers))
}

// commands returns one command for each worker, or one broadcast.
func (p controlPlan) commands() ([]history.Command, error) {
	destinations := slices.Collect(slices.Chunk(p.workers, 1))
	if len(p.workers) == 0 {
		destinations = [][]string{nil}
	}
	var list []history.Command
	for _, destination := range destinations {
		c, err := controlCommand(p.method.Name, p.args, destination, p.expires)
		if err != nil {
			return nil, err
		}
		c.Summary = summary(p.method, p.args)
		list = append(list, c)
	}
	return list, nil
}

// controlCommand returns a command for workers.
func controlCommand(method string, args map[string]any, destination []string, expires time.Time) (history.Command, error) {
	payload := controlPayload{Method: method, Arguments: args, Destination: destination}
	c, err := newCommand(kindControl, groupControl, payload)
	c.Target, c.ExpiresAt = targets(destination), expires
	if ids, ok := args["task_id"].([]any); ok && len(ids) == 1 {
		c.TaskID, _ = ids[0].(string)
	}
	return c, err
}

// targets describes the workers.
func targets(workers []string) string {
	if len(workers) == 0 {
		return everyWorker
	}
	return joinNames(workers)
}
