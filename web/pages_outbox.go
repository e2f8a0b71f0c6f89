package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/live"
	"github.com/umbelhq/umbel/web/query"
)

// statsAge is how long the numbers of the outbox are shown where no relay says that they have changed.
const statsAge = 2 * time.Second

// stats keeps the numbers of the outbox, which every page shows. It is safe for concurrent use.
type stats struct {
	mu      sync.Mutex
	readAt  time.Time
	changed <-chan struct{} // closed when the numbers are out of date
	numbers history.OutboxStats
	err     error
}

// outboxStats returns the numbers of the outbox.
func (p *pages) outboxStats(ctx context.Context) (history.OutboxStats, error) {
	s := &p.outbox
	s.mu.Lock()
	defer s.mu.Unlock()
	now := p.now()
	if age := now.Sub(s.readAt); s.readAt.IsZero() || age < 0 || age > statsAge || closed(s.changed) {
		s.changed = nil
		if relay := p.operations.Relay; relay != nil {
			s.changed = relay.Changed()
		}
		s.numbers, s.err = p.cluster.History().OutboxStats(ctx)
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

// outgoing is what keeps commands from being sent. Numbers that cannot be read are left out.
func (p *pages) outgoing(ctx context.Context) templates.OutboxAlert {
	if p.operations == nil {
		return templates.OutboxAlert{}
	}
	numbers, err := p.outboxStats(ctx)
	if err != nil {
		p.log.WarnContext(ctx, "sum up outbox", "error", err)
	}
	o := templates.OutboxAlert{Dead: numbers.DeadLetters}
	if relay := p.operations.Relay; relay != nil {
		s := relay.Status()
		o.Open, o.Error = s.BreakerOpen, s.LastError
		o.Until = micros(s.BreakerUntil)
		o.Pending = numbers.States[history.CommandPending] + numbers.States[history.CommandInFlight]
	}
	return o
}

// outboxTopic is the page of the live topic of a list of commands.
func (p *pages) outboxTopic(ctx context.Context, topic, raw string) (page, error) {
	v, err := url.ParseQuery(strings.TrimPrefix(raw, "?"))
	if err != nil {
		return page{}, live.ErrNoTopic
	}
	q, err := query.ParseCommands(v)
	if err != nil || q.URL("outbox") != topic {
		return page{}, live.ErrNoTopic
	}
	return p.outboxPage(ctx, q), nil
}

// outboxPage lists commands. What cannot be read is said on the page.
func (p *pages) outboxPage(ctx context.Context, q query.Commands) page {
	path := p.site.Prefix + "/outbox"
	v := templates.Outbox{Self: q.URL(path), Conditions: conditions(q, path), Counts: map[string]int{}, Query: asked(q)}
	numbers, err := p.outboxStats(ctx)
	for s, n := range numbers.States {
		v.Counts[string(s)] = n
	}
	v.OldestPending, v.Unsupported = micros(numbers.OldestPending), numbers.OtherSchema
	for _, f := range numbers.TopErrors {
		v.Failures = append(v.Failures, templates.FailureCount{Error: f.Error, N: f.N})
	}
	v.State, v.States = shownStates(q, path, numbers.States)
	if relay := p.operations.Relay; relay != nil {
		s := relay.Status()
		v.Relay = &templates.Relay{Open: s.BreakerOpen, Until: micros(s.BreakerUntil), Error: s.LastError, Sent: s.Sent}
	}
	var found []history.Command
	var next int64
	if err == nil {
		found, next, err = p.cluster.History().Commands(ctx, q.Filter())
	}
	if err != nil {
		p.log.WarnContext(ctx, "list commands", "error", err)
		v.Unreadable = true
	}
	for _, c := range found {
		v.Commands = append(v.Commands, p.command(c))
	}
	if q.Before != 0 {
		v.Newest = q.First().URL(path)
	}
	if next != 0 {
		q.Before = next
		v.Older = q.URL(path)
	}
	return page{
		topic: strings.TrimPrefix(v.Self, p.site.Prefix+"/"), address: strings.TrimPrefix(v.Self, p.site.Prefix),
		title: "Outbox", section: templates.SectionOutbox, view: v, version: p.clusterVersion(),
	}
}

// shownStates are the choices of states, and which one is shown.
func shownStates(q query.Commands, path string, counts map[history.CommandState]int) (string, []templates.StateOption) {
	choices := []struct {
		label  string
		states []history.CommandState
	}{
		{"All", nil},
		{"Pending", []history.CommandState{history.CommandPending}},
		{"In flight", []history.CommandState{history.CommandInFlight}},
		{"Sent", []history.CommandState{history.CommandSent}},
		{"Done", []history.CommandState{history.CommandDone}},
		{"No answer", []history.CommandState{history.CommandSilent}},
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
		} else {
			for _, n := range counts {
				s.Count += n
			}
		}
		if slices.Equal(c.states, q.States) {
			shown = s.Value
		}
		list = append(list, s)
	}
	return shown, list
}

// asked is what the form of the list shows.
func asked(q query.Commands) templates.CommandQuery {
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
	if q.Order != 0 {
		add("order", strconv.FormatInt(q.Order, 10), func(q *query.Commands) { q.Order = 0 })
	}
	return list
}

// command is a command as pages show it.
func (p *pages) command(c history.Command) templates.Command {
	d := templates.Command{
		ID: c.ID, Request: c.RequestID, Kind: c.Kind, State: string(c.State), Target: c.Target, Summary: c.Summary, TaskID: c.TaskID,
		Attempts: c.Attempts, Deferrals: c.Deferrals, Error: c.LastError, Actor: c.Actor,
		Created: micros(c.CreatedAt), Due: micros(c.DueAt), Expires: micros(c.ExpiresAt), Claimed: micros(c.ClaimedAt),
		Sent: micros(c.SentAt), Done: micros(c.DoneAt),
		Waiting: c.State == history.CommandPending && !c.DueAt.After(c.CreatedAt),
	}
	for _, a := range c.Replies {
		d.Replies = append(d.Replies, templates.CommandReply{Node: a.Node, At: micros(a.At), Text: a.Text, OK: a.OK})
	}
	for _, node := range c.Expected {
		if !slices.ContainsFunc(c.Replies, func(a history.Reply) bool { return a.Node == node }) {
			d.NoReply = append(d.NoReply, node)
		}
	}
	return d
}

func (p *pages) outboxList(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	v := r.URL.Query()
	q, err := query.ParseCommands(v)
	if err != nil {
		p.problem(w, r, http.StatusBadRequest, templates.Problem{
			Title: "Wrong address", Message: "The parameter " + err.Error() + ".",
			Back: p.site.Prefix + "/outbox", BackText: "All commands",
		})
		return
	}
	if hasEmpty(v) {
		target := q.URL(p.site.Prefix + "/outbox")
		http.Redirect(w, r, target, http.StatusSeeOther) //nolint:gosec // only the query is the visitor's
		return
	}
	pg := p.outboxPage(ctx, q)
	status := http.StatusOK
	if v, ok := pg.view.(templates.Outbox); ok && v.Unreadable {
		status = http.StatusServiceUnavailable
	}
	p.show(w, r, status, pg)
}

// orderPage shows one order. Its topic is order/<id>, with the cursor behind it on later pages. The error is
// errUnknown, or that of the store.
func (p *pages) orderPage(ctx context.Context, id int64, before int64) (page, error) {
	kept := p.cluster.History()
	counts, err := kept.RequestStates(ctx, id)
	if err != nil {
		return page{}, err
	}
	found, next, err := kept.Commands(ctx, history.CommandFilter{RequestID: id, Before: before, Limit: query.DefaultLimit})
	if err != nil {
		return page{}, err
	}
	if len(found) == 0 {
		return page{}, errUnknown
	}
	if before == 0 && next == 0 {
		slices.Reverse(found) // all of them, in their order
	}
	v := templates.Request{ID: id, Counts: map[string]int{}}
	for s, n := range counts {
		v.Counts[string(s)] = n
	}
	for _, c := range found {
		v.Commands = append(v.Commands, p.command(c))
	}
	name := strconv.FormatInt(id, 10)
	pg := page{
		topic: "order/" + name, address: templates.RequestPath(id), title: "Order " + name,
		section: templates.SectionOutbox, version: p.clusterVersion(),
	}
	if before != 0 {
		v.Newest = p.site.Prefix + pg.address
		pg.topic += cursor(before)
		pg.address += cursor(before)
	}
	if next != 0 {
		v.Older = p.site.Prefix + templates.RequestPath(id) + cursor(next)
	}
	pg.view = v
	return pg, nil
}

func cursor(before int64) string { return "?cursor=" + strconv.FormatInt(before, 10) }

// orderTopic is the page of the live topic of an order.
func (p *pages) orderTopic(ctx context.Context, topic, raw string) (page, error) {
	name, params, _ := strings.Cut(raw, "?")
	id, before, ok := orderAddress(name, params)
	if !ok {
		return page{}, live.ErrNoTopic
	}
	pg, err := p.orderPage(ctx, id, before)
	if err == nil && pg.topic != topic {
		err = live.ErrNoTopic
	}
	return pg, err
}

// orderAddress reads the id of an order and the place in its list of commands.
func orderAddress(name, params string) (id, before int64, ok bool) {
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil || id < 1 {
		return 0, 0, false
	}
	v, err := url.ParseQuery(params)
	if err != nil {
		return 0, 0, false
	}
	before, _, err = query.ParseAudit(v)
	return id, before, err == nil
}

func (p *pages) order(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	id, before, ok := orderAddress(param(r, "order"), r.URL.RawQuery)
	pg, err := page{}, errUnknown
	if ok {
		pg, err = p.orderPage(ctx, id, before)
	}
	if errors.Is(err, errUnknown) {
		// Somebody may have the number of a command that is not its order's first.
		if c, err := p.cluster.History().Command(ctx, id); err == nil && c.RequestID != id {
			http.Redirect(w, r, p.site.Prefix+templates.RequestPath(c.RequestID), http.StatusSeeOther)
			return
		}
		p.problem(w, r, http.StatusNotFound, templates.Problem{
			Title:   "Unknown order",
			Message: "There is no order of this number. Orders that are finished are forgotten after a while.",
			Back:    p.site.Prefix + "/outbox", BackText: "All commands",
		})
		return
	}
	p.showRead(w, r, http.StatusOK, pg, err)
}
