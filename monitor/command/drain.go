package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

const (
	drainWithin = 24 * time.Hour  // after which a drain is given up
	drainPause  = 3 * time.Second // between looks at the worker
	drainAnswer = 2 * time.Second // for one reply of the worker
	maxDrains   = 100             // newest ones among which that of a worker is looked for
)

// drainPayload is that of a drain, and of what undoes it.
type drainPayload struct {
	Worker   string   `json:"worker"`
	PID      int64    `json:"pid,omitempty"` // of the process that is drained: its successor is not
	Shutdown bool     `json:"shutdown,omitempty"`
	Queues   []string `json:"queues"` // that it consumed from; null before the worker has told
}

// Drain is the newest drain of a worker.
type Drain struct {
	Command  history.Command // LastError says how far it is while it is pending
	PID      int64           // of the process that is drained
	Queues   []string        // whose consumers were cancelled
	Shutdown bool            // once it runs nothing
}

// DrainOf returns the newest drain of a worker, false if there is none or it was undone.
func (s *Service) DrainOf(ctx context.Context, worker string) (Drain, bool, error) {
	c, ok, err := s.newestOf(ctx, kindDrain, worker)
	if err != nil || !ok {
		return Drain{}, false, err
	}
	undo, undone, err := s.newestOf(ctx, kindUndrain, worker)
	if err != nil || undone && undo.ID > c.ID {
		return Drain{}, false, err
	}
	var p drainPayload
	if err := decode(c, &p); err != nil {
		return Drain{}, false, err
	}
	return Drain{c, p.PID, p.Queues, p.Shutdown}, true, nil
}

// newestOf returns the newest command of a kind for a worker.
func (s *Service) newestOf(ctx context.Context, kind, worker string) (history.Command, bool, error) {
	list, _, err := s.outbox.Commands(ctx, history.CommandFilter{Kind: kind, Limit: maxDrains})
	if err != nil {
		return history.Command{}, false, fmt.Errorf("read commands of kind %s: %w", kind, err)
	}
	for _, c := range list {
		if c.Target == worker {
			return c, true, nil
		}
	}
	return history.Command{}, false, nil
}

// stepCommands returns a command for each worker that is to be drained, or of which that is to be undone.
func (s *Service) stepCommands(ctx context.Context, p controlPlan) ([]history.Command, error) {
	known := s.workers()
	var list []history.Command
	for _, worker := range p.workers {
		payload := drainPayload{Worker: worker, PID: known[worker].PID}
		payload.Shutdown, _ = p.args["shutdown"].(bool)
		kind, group, expires := kindDrain, "drain "+worker, s.now().Add(drainWithin)
		if p.method.Name == "undrain" {
			d, ok, err := s.DrainOf(ctx, worker)
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, &Error{Kind: Conflict, Field: "workers", Message: "no drain of " + worker + " is to be undone"}
			}
			payload.Queues = d.Queues
			kind, group, expires = kindUndrain, groupControl, p.expires
		}
		c, err := newCommand(kind, group, payload)
		if err != nil {
			return nil, err
		}
		c.Target, c.ExpiresAt, c.Summary = worker, expires, summary(p.method, p.args)
		list = append(list, c)
	}
	return list, nil
}

// drain takes the next step: it learns the queues of the worker, cancels their consumers, or looks whether the worker still
// runs something. It begins with what it finds, so that a step may be repeated after a restart.
func (s *Service) drain(ctx context.Context, c history.Command, p drainPayload) (relay.Sent, error) {
	undo, ok, err := s.newestOf(ctx, kindUndrain, p.Worker)
	if err != nil {
		return relay.Sent{}, err
	}
	w := s.workers()[p.Worker]
	switch {
	case ok && undo.ID > c.ID:
		return s.drained(p, "Undone."), nil
	case w.Status == state.Offline || p.PID != 0 && w.PID != 0 && w.PID != p.PID:
		return s.drained(p, "The worker has ended."), nil
	}
	queues, err := s.consumedBy(ctx, p.Worker)
	if err != nil {
		return relay.Sent{}, err
	}
	if p.Queues == nil { // known before the first is cancelled, so that it can be undone
		p.Queues = append([]string{}, queues...)
		payload, err := json.Marshal(p)
		if err != nil {
			return relay.Sent{}, fmt.Errorf("write payload of a drain: %w", err)
		}
		return relay.Sent{}, &relay.LaterError{Progress: "It consumes from " + joinNames(queues) + ".", Payload: payload}
	}
	for _, queue := range queues {
		if err := s.callWorker(ctx, p.Worker, "cancel_consumer", map[string]any{"queue": queue}, nil); err != nil {
			return relay.Sent{}, err
		}
	}
	if len(queues) > 0 {
		return relay.Sent{}, &relay.LaterError{Progress: "Cancelled the consumers of " + joinNames(queues) + "."}
	}
	return s.awaitIdle(ctx, p)
}

// awaitIdle ends a drain once the worker holds no task that it could start or that runs.
func (s *Service) awaitIdle(ctx context.Context, p drainPayload) (relay.Sent, error) {
	var lists [3][]json.RawMessage
	for i, method := range []string{"scheduled", "reserved", "active"} { // in the order in which tasks pass, so that none is missed
		if err := s.callWorker(ctx, p.Worker, method, nil, &lists[i]); err != nil {
			return relay.Sent{}, err
		}
	}
	scheduled, reserved, active := lists[0], lists[1], lists[2]
	var held []string
	if len(active) > 0 {
		held = append(held, count(len(active), "task runs", "tasks run"))
	}
	if len(reserved) > 0 {
		held = append(held, count(len(reserved), "task has not started", "tasks have not started"))
	}
	if len(held) > 0 {
		return relay.Sent{}, &relay.LaterError{After: drainPause, Progress: "It consumes from no queue. " + strings.Join(held, ", ") + "."}
	}
	text := "It consumes from no queue and runs nothing."
	if len(scheduled) > 0 {
		text += " " + count(len(scheduled), "task waits for its time", "tasks wait for their time") + "."
	}
	if !p.Shutdown {
		return s.drained(p, text), nil
	}
	conversation, err := s.Client.Send(ctx, remote.Request{Method: "shutdown", Destination: []string{p.Worker}, Timeout: drainAnswer})
	if err != nil {
		return relay.Sent{}, failure(err)
	}
	over, end := context.WithCancel(ctx)
	end()
	conversation.Wait(over)
	return s.drained(p, text+" Asked to shut down."), nil
}

// undrain consumes again from the queues of which a drain has cancelled the consumers.
func (s *Service) undrain(ctx context.Context, p drainPayload) (relay.Sent, error) {
	for _, queue := range p.Queues {
		if err := s.callWorker(ctx, p.Worker, "add_consumer", map[string]any{"queue": queue}, nil); err != nil {
			return relay.Sent{}, err
		}
	}
	return s.drained(p, "It consumes from "+joinNames(p.Queues)+" again."), nil
}

// drained is the end of a drain, or of what undoes it, with a sentence in place of a worker's reply.
func (s *Service) drained(p drainPayload, text string) relay.Sent {
	answer := history.Reply{Node: p.Worker, At: s.now(), OK: true, Text: text}
	return relay.Sent{Expected: []string{p.Worker}, Replies: func(_ context.Context, report func([]history.Reply)) bool {
		report([]history.Reply{answer})
		return true
	}}
}

// consumedBy asks a worker from which queues it consumes.
func (s *Service) consumedBy(ctx context.Context, worker string) ([]string, error) {
	var queues []struct {
		Name string `json:"name"`
	}
	if err := s.callWorker(ctx, worker, "active_queues", nil, &queues); err != nil {
		return nil, err
	}
	var list []string
	for _, q := range queues {
		list = append(list, q.Name)
	}
	return list, nil
}

// callWorker calls a method of a worker and decodes its value, unless to is nil. A worker that does not reply is asked later.
func (s *Service) callWorker(ctx context.Context, worker, method string, args map[string]any, to any) error {
	replies, err := s.Client.Call(ctx, remote.Request{Method: method, Arguments: args, Destination: []string{worker}, Timeout: drainAnswer})
	if err != nil {
		return failure(err)
	}
	if len(replies.Items) == 0 {
		return &relay.LaterError{After: drainPause, Progress: "The worker does not reply."}
	}
	r := replies.Items[0]
	if r.Error != "" || r.Undecodable != "" {
		return &relay.LaterError{After: drainPause, Progress: fmt.Sprintf("The worker replied to %s: %s%s.", method, r.Error, r.Undecodable)}
	}
	if to == nil {
		s.Inspector.Acknowledged(worker, method, args)
		return nil
	}
	if err := json.Unmarshal(r.Value, to); err != nil {
		return fmt.Errorf("%w: reply to %s: %w", relay.ErrPermanent, method, err)
	}
	return nil
}

// warnDrain warns of what a drain waits for and leaves behind.
func (e *effects) warnDrain(ctx context.Context) {
	sum, unreported := e.heldByTargets(ctx)
	if n := sum.running + sum.reserved; n > 0 {
		e.warn(false, "%s there first.", count(n, "task ends", "tasks end"))
	}
	if shutdown, _ := e.plan.args["shutdown"].(bool); sum.scheduled > 0 && shutdown {
		e.warn(false, "%s.", count(sum.scheduled, "task that waits for its time returns to the queue", "tasks that wait for their time return to the queue"))
	} else if sum.scheduled > 0 {
		e.warn(false, "%s there at their time.", count(sum.scheduled, "task still runs", "tasks still run"))
	}
	if len(unreported) > 0 {
		e.warn(false, "%s: these numbers come from heartbeats and events.", plural(unreported, "did not report its tasks", "did not report their tasks"))
	}
	e.warnLeftWithout()
}
