package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/control"
	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// everyWorker is the target of what goes to all.
const everyWorker = "every worker"

// controlPlan is an order for workers that was checked.
type controlPlan struct {
	method  control.Method
	args    map[string]any
	workers []string // empty is every worker
	expires time.Time
}

// PreviewControl checks an order and says what it would do.
func (d *Desk) PreviewControl(ctx context.Context, o ControlOrder) (Preview, error) {
	p, err := d.planControl(o)
	if err != nil {
		return Preview{}, err
	}
	return d.previewControl(ctx, p), nil
}

// Control takes an order: one command for each worker that is named, or one for all.
func (d *Desk) Control(ctx context.Context, by By, o ControlOrder) (Receipt, error) {
	r := request{action: o.Method, same: o, target: targets(o.Workers), detail: o}
	if receipt, ok, err := d.replayed(ctx, by, r); ok || err != nil {
		return receipt, err
	}
	p, err := d.planControl(o)
	if err != nil {
		return Receipt{}, err
	}
	if r.commands, err = p.commands(); err != nil {
		return Receipt{}, err
	}
	r.warnings = d.previewControl(ctx, p).Warnings
	return d.enqueue(ctx, by, r)
}

// planControl checks the method, its arguments and the names of workers.
func (d *Desk) planControl(o ControlOrder) (p controlPlan, err error) {
	m, ok := control.Lookup(o.Method)
	if !ok {
		message := fmt.Sprintf("there is no method %.100q", o.Method)
		if why := control.Refused(o.Method); why != "" {
			message = fmt.Sprintf("%s is not offered: %s", o.Method, why)
		}
		return p, &Error{Field: "method", Message: message, Nearest: control.Nearest(o.Method)}
	}
	p.method = m
	if p.args, err = checkArguments(m, o.Arguments); err != nil {
		return p, err
	}
	if p.expires, err = d.expiry(o.Expires); err != nil {
		return p, err
	}
	known := d.workers()
	for i, name := range o.Workers {
		if _, ok := known[name]; !ok {
			return p, &Error{
				Kind: Unknown, Field: fmt.Sprintf("workers[%d]", i), Message: fmt.Sprintf("there is no worker %.255q", name),
				Nearest: query.Nearest(name, names(known)),
			}
		}
		if !slices.Contains(p.workers, name) {
			p.workers = append(p.workers, name)
		}
	}
	return p, nil
}

// checkArguments checks the arguments of a method.
func checkArguments(m control.Method, args map[string]any) (map[string]any, error) {
	checked, err := m.Check(args)
	if wrong, ok := errors.AsType[*control.ArgumentError](err); ok {
		field := "arguments"
		if wrong.Argument != "" {
			field += "." + wrong.Argument
		}
		return nil, &Error{Field: field, Message: wrong.Error(), Nearest: wrong.Nearest}
	}
	return checked, err
}

// workers returns all workers by name.
func (d *Desk) workers() map[string]state.Worker {
	known := make(map[string]state.Worker)
	d.tasks.View(func(c *state.Cluster) {
		for _, w := range c.Workers() {
			known[w.Name] = w
		}
	})
	return known
}

// names returns the names of workers in order.
func names(workers map[string]state.Worker) []string {
	list := make([]string, 0, len(workers))
	for name := range workers {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// commands returns one command for each worker, or one for all.
func (p controlPlan) commands() ([]store.Command, error) {
	to := make([][]string, 0, len(p.workers))
	for _, name := range p.workers {
		to = append(to, []string{name})
	}
	if len(to) == 0 {
		to = [][]string{nil}
	}
	var list []store.Command
	for _, destination := range to {
		c, err := controlCommand(p.method.Name, p.args, destination, p.expires)
		if err != nil {
			return nil, err
		}
		c.Summary = summary(p.method, p.args)
		list = append(list, c)
	}
	return list, nil
}

// controlCommand is a command for workers.
func controlCommand(method string, args map[string]any, destination []string, expires time.Time) (store.Command, error) {
	payload := controlPayload{Method: method, Arguments: args, Destination: destination}
	c, err := newCommand(kindControl, groupControl, payload)
	c.Target, c.ExpiresAt = targets(destination), expires
	if ids, ok := args["task_id"].([]any); ok && len(ids) == 1 {
		c.TaskID, _ = ids[0].(string)
	}
	return c, err
}

// targets names workers for people.
func targets(workers []string) string {
	if len(workers) == 0 {
		return everyWorker
	}
	return list(workers)
}

// list names a few things and counts the rest.
func list(items []string) string {
	switch n := len(items); {
	case n == 0:
		return "none"
	case n == 1:
		return items[0]
	case n <= 3:
		rest := items[0]
		for _, item := range items[1 : n-1] {
			rest += ", " + item
		}
		return rest + " and " + items[n-1]
	default:
		return fmt.Sprintf("%s, %s and %d more", items[0], items[1], n-2)
	}
}

// summary says what a method does with its arguments, for people.
func summary(m control.Method, args map[string]any) string {
	switch m.Name {
	case "shutdown":
		return "Shut down"
	case "pool_grow", "pool_shrink":
		n := args["n"]
		if n == nil {
			n = 1
		}
		return fmt.Sprintf("%s by %v", m.Title, n)
	case "add_consumer":
		return fmt.Sprintf("Consume from queue %v", args["queue"])
	case "cancel_consumer":
		return fmt.Sprintf("Stop consuming from queue %v", args["queue"])
	case "rate_limit":
		switch rate := args["rate_limit"]; fmt.Sprint(rate) {
		case "0", "<nil>":
			return fmt.Sprintf("Lift the rate limit of %v", args["task_name"])
		default:
			return fmt.Sprintf("Limit %v to %v", args["task_name"], rate)
		}
	case "time_limit":
		return fmt.Sprintf("Set time limits of %v: hard %s, soft %s", args["task_name"], seconds(args["hard"]), seconds(args["soft"]))
	case "autoscale":
		return "Autoscale" + pairs(args)
	case "revoke", "terminate":
		return revocation(m.Name, args)
	}
	return m.Title + pairs(args)
}

// seconds is a time limit for people.
func seconds(v any) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprintf("%v s", v)
}

// pairs are arguments for people.
func pairs(args map[string]any) string {
	keys := make([]string, 0, len(args))
	for key := range args {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	text := ""
	for i, key := range keys {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		text += fmt.Sprintf("%s%s %.100s", separator, key, fmt.Sprint(args[key]))
	}
	return text
}

// revocation says which tasks are revoked, or terminated.
func revocation(method string, args map[string]any) string {
	ids, _ := args["task_id"].([]any)
	what := fmt.Sprintf("%d tasks", len(ids))
	if len(ids) == 1 {
		what = fmt.Sprintf("task %v", ids[0])
	}
	if kill, ok := args["terminate"].(bool); !ok || !kill {
		if method == "revoke" {
			return "Revoke " + what
		}
	}
	signal := args["signal"]
	if signal == nil {
		signal = defaultSignal
	}
	return fmt.Sprintf("Terminate %s with %v", what, signal)
}
