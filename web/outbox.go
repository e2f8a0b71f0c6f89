package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
)

// statsAge is how long the numbers of the outbox are shown where no relay says that they have changed.
const statsAge = 2 * time.Second

// outboxStats keeps the numbers of the outbox, which every page shows. It is safe for concurrent use.
type outboxStats struct {
	mu      sync.Mutex
	readAt  time.Time
	changed <-chan struct{} // closed when the numbers are out of date
	numbers history.OutboxStats
	err     error
}

// outboxStats returns the numbers of the outbox.
func (p *common) outboxStats(ctx context.Context) (history.OutboxStats, error) {
	s := &p.outbox
	s.mu.Lock()
	defer s.mu.Unlock()
	now := p.now()
	if age := now.Sub(s.readAt); s.readAt.IsZero() || age < 0 || age > statsAge || closed(s.changed) {
		s.changed = nil
		if r := p.commands.Relay; r != nil {
			s.changed = r.Changed()
		}
		s.numbers, s.err = p.commands.OutboxStats(ctx)
		s.readAt = now
	}
	return s.numbers, s.err
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// outboxAlert is what keeps commands from being sent. Numbers that cannot be read are left out.
func (p *common) outboxAlert(ctx context.Context) templates.OutboxAlert {
	if p.commands == nil {
		return templates.OutboxAlert{}
	}
	numbers, err := p.outboxStats(ctx)
	if err != nil {
		p.log.WarnContext(ctx, "sum up outbox", "error", err)
	}
	o := templates.OutboxAlert{Dead: numbers.DeadLetters}
	if r := p.commands.Relay; r != nil {
		o.Relay = p.shownRelay(r.Status())
		o.Pending = numbers.States[history.CommandPending] + numbers.States[history.CommandInFlight]
	}
	return o
}

// shownRelay returns the state of the relay as the audience may see it.
func (p *common) shownRelay(s relay.Status) relay.Status {
	if p.audience.Payload {
		return s
	}
	return payload.Relay(s)
}

// outboxPages are the list of commands and the page of one request.
type outboxPages struct{ *common }

// load lists requests, or the commands in a state. What cannot be read is said on the page.
func (p *outboxPages) load(ctx context.Context, a address) (page, error) {
	q, err := query.ParseCommands(a.query)
	if err != nil {
		return page{}, invalid(err, templates.Link{Text: "All commands", Href: p.urls.Prefix + "/outbox"})
	}
	pg := page{url: q.URL("/outbox"), title: "Outbox", section: templates.SectionOutbox}
	path := p.urls.Prefix + "/outbox"
	v := templates.Outbox{Tabs: p.outboxTabs(""), Conditions: conditions(q, path), Query: commandQuery(q)}
	numbers, err := p.outboxStats(ctx)
	if !p.audience.Payload {
		numbers = payload.Outbox(numbers)
	}
	v.Stats = numbers
	v.State, v.States = shownStates(q, path, numbers.States)
	if r := p.commands.Relay; r != nil {
		v.Relay = new(p.shownRelay(r.Status()))
	}
	var next int64
	v.ByRequest = len(q.States) == 0 && q.Request == 0
	switch {
	case err != nil:
	case v.ByRequest:
		v.Requests, next, err = p.commands.Requests(ctx, q.Filter())
		for i := range v.Requests {
			v.Requests[i].First = p.shownCommand(v.Requests[i].First)
		}
	default:
		v.Commands, next, err = p.commands.Commands(ctx, q.Filter())
		v.Commands = p.shownCommands(v.Commands)
	}
	if err != nil {
		p.log.WarnContext(ctx, "list commands", "error", err)
		v.Unreadable, pg.status = true, http.StatusServiceUnavailable
	}
	if q.Before != 0 {
		v.Newest = q.First().URL(path)
	}
	if next != 0 {
		q.Before = next
		v.Older = q.URL(path)
	}
	pg.view = v
	return pg, nil
}

// shownStates are the choices of states, and which one is shown.
func shownStates(q query.Commands, path string, counts map[history.CommandState]int) (string, []templates.StateOption) {
	choices := []struct {
		label  string
		states []history.CommandState
	}{
		{"Requests", nil},
		{"Pending", []history.CommandState{history.CommandPending}},
		{"In flight", []history.CommandState{history.CommandInFlight}},
		{"Sent", []history.CommandState{history.CommandSent}},
		{"Done", []history.CommandState{history.CommandDone}},
		{"No reply", []history.CommandState{history.CommandNoReply}},
		{"Dead letters", []history.CommandState{history.CommandDead}},
		{"Expired", []history.CommandState{history.CommandExpired}},
		{"Discarded", []history.CommandState{history.CommandDiscarded}},
	}
	shown, list := "other", make([]templates.StateOption, 0, len(choices))
	for _, c := range choices {
		to := q.First()
		to.States = c.states
		s := templates.StateOption{Label: c.label, Href: to.URL(path)}
		if len(c.states) > 0 {
			s.Value, s.Count = string(c.states[0]), counts[c.states[0]]
		}
		if slices.Equal(c.states, q.States) {
			shown = s.Value
		}
		list = append(list, s)
	}
	return shown, list
}

// commandQuery is what the form of the list shows.
func commandQuery(q query.Commands) templates.CommandQuery {
	states := make([]string, len(q.States))
	for i, s := range q.States {
		states[i] = string(s)
	}
	return templates.CommandQuery{
		States: strings.Join(states, ","), Kind: q.Kind, Worker: q.Worker, Actor: q.Actor, Kinds: query.CommandKinds(),
	}
}

// conditions are what else a query asks for.
func conditions(q query.Commands, path string) []templates.Condition {
	var list []templates.Condition
	add := func(label, value string, without func(q *query.Commands)) {
		if value == "" {
			return
		}
		to := q.First()
		without(&to)
		list = append(list, templates.Condition{Label: label, Value: value, Without: to.URL(path)})
	}
	add("kind", q.Kind, func(q *query.Commands) { q.Kind = "" })
	add("task", q.Task, func(q *query.Commands) { q.Task = "" })
	add("worker", q.Worker, func(q *query.Commands) { q.Worker = "" })
	add("by", q.Actor, func(q *query.Commands) { q.Actor = "" })
	if q.Request != 0 {
		add("request", strconv.FormatInt(q.Request, 10), func(q *query.Commands) { q.Request = 0 })
	}
	return list
}
