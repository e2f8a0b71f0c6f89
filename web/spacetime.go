package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/internal/spacetime"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
	"github.com/umbelhq/umbel/templates"
)

const (
	spaceTimeTab = "spacetime"
	paramOrder   = "order" // what places in a diagram follow: time, or else the causal order
	paramFrom    = "from"  // the first task that is drawn, by time
	orderByTime  = "time"
	maxParents   = 10 // tasks of other parts of a workflow that are drawn for what they have sent
	maxReplies   = 20 // replies to one command
)

// diagram collects the events of tasks until there are as many as are drawn.
type diagram struct {
	*common
	events []causality.Event
	about  []string
	has    map[string]bool
}

func (p *common) newDiagram() *diagram { return &diagram{common: p, has: map[string]bool{}} }

// add adds the events of a task, about tells that they are what the diagram is of. It reports false if there is no room.
func (d *diagram) add(ctx context.Context, t *state.Task, about bool) (bool, error) {
	if len(d.events) >= spacetime.MaxEvents {
		return false, nil
	}
	if d.has[t.ID] {
		return true, nil
	}
	events, err := d.backend.TaskEvents(ctx, t.ID)
	if err != nil && !errors.Is(err, history.ErrNotFound) {
		return false, fmt.Errorf("read events: %w", err)
	}
	if len(d.events)+len(events) > spacetime.MaxEvents && len(d.events) > 0 {
		return false, nil
	}
	d.has[t.ID] = true
	d.events = append(d.events, causality.OfTask(t, events)...)
	if about {
		d.about = append(d.about, t.ID)
	}
	return true, nil
}

// view returns the diagram of what was added. path is that of its page below the prefix, and parameters those of the address
// besides the order.
func (d *diagram) view(path string, parameters url.Values, timed bool) templates.SpaceTime {
	v := templates.SpaceTime{Graph: causality.New(d.events), About: d.about, Timed: timed}
	d.backend.View(func(c state.View) { v.Offsets = workflow.Offsets(c.Workers()) })
	v.Offsets[templates.ControlHost] = 0
	link := func(order string) string {
		q := url.Values{}
		maps.Copy(q, parameters)
		if q.Del(paramOrder); order != "" {
			q.Set(paramOrder, order)
		}
		if len(q) == 0 {
			return d.urls.Prefix + path + "#space-time"
		}
		return d.urls.Prefix + path + "?" + q.Encode() + "#space-time"
	}
	v.ByOrder = templates.Choice{Text: "By cause", Href: link(""), Current: !timed}
	v.ByTime = templates.Choice{Text: "By time", Href: link(orderByTime), Current: timed}
	return v
}

// spaceTime is the tab of a workflow with the events of its tasks, as many as are drawn at once.
func (p *workflowPages) spaceTime(ctx context.Context, w *workflow.Workflow, query url.Values) (templates.WorkflowTab, error) {
	byTime := make([]int, len(w.Tasks))
	for i := range byTime {
		byTime[i] = i
	}
	slices.SortStableFunc(byTime, func(a, b int) int { return cmp.Compare(w.Tasks[a].FirstAt(), w.Tasks[b].FirstAt()) })
	from, _ := strconv.Atoi(query.Get(paramFrom)) // 0 if it is no number
	from = min(max(from, 0), max(len(byTime)-1, 0))
	d := p.newDiagram()
	until, err := p.drawn(ctx, d, w, byTime, from)
	if err != nil {
		return nil, err
	}
	parameters := url.Values{paramTab: {spaceTimeTab}}
	if from > 0 {
		parameters.Set(paramFrom, strconv.Itoa(from))
	}
	v := d.view(templates.WorkflowPath(w.Root), parameters, query.Get(paramOrder) == orderByTime)
	return v.Part(p.urls, w, from, until, max(from-(until-from), 0), query.Get(paramOrder)), nil
}

// drawn adds the tasks from one on, and those that sent them, and returns before which it ended.
func (p *workflowPages) drawn(ctx context.Context, d *diagram, w *workflow.Workflow, byTime []int, from int) (until int, err error) {
	parents := 0
	for n, i := range byTime[from:] {
		t := &w.Tasks[i]
		if t.Parent >= 0 && !d.has[w.Tasks[t.Parent].ID] && parents < maxParents {
			parents++
			if _, err := d.add(ctx, identity(&w.Tasks[t.Parent]), false); err != nil {
				return 0, err
			}
		}
		if ok, err := d.add(ctx, identity(t), true); err != nil || !ok {
			return from + max(n, 1), err
		}
	}
	return len(byTime), nil
}

// identity is what a diagram asks of a task.
func identity(t *workflow.Task) *state.Task {
	s := &state.Task{ID: t.ID}
	if t.ParentID != "" {
		s.ParentID = &t.ParentID
	}
	return s
}

// commandEvents are when a control command was sent, and the replies to it. A reply does not say which process of its node
// sent it, so it has a lane of its own.
func commandEvents(c *history.Command) []causality.Event {
	if c.SentAt.IsZero() {
		return nil
	}
	ticket := "command " + strconv.FormatInt(c.ID, 10)
	events := []causality.Event{{
		Kind: causality.Command, Process: clock.Process{Hostname: templates.ControlHost}, Stamp: clock.Stamp{Micros: c.SentAt.UnixMicro()},
		Task: ticket, Name: c.Summary, Type: "command",
	}}
	for _, r := range c.Replies[:min(len(c.Replies), maxReplies)] {
		events = append(events, causality.Event{
			Kind: causality.Reply, Process: clock.Process{Hostname: r.Node, PID: -1}, Clock: r.Clock, Task: ticket, Name: c.Summary, Type: "reply",
		})
	}
	return events
}

// revokedLate is how much earlier than a command its effect may seem to be, by clocks that are corrected.
const revokedLate = time.Second

// revoked reports whether a task was revoked, or terminated, after a command that asked for that.
func (d *diagram) revoked(c *history.Command, t *state.Task) bool {
	if e, ok := command.EffectOn(*c, t); !ok || e.Grade != causality.Proved {
		return false
	}
	var offsets map[string]int64
	d.backend.View(func(c state.View) { offsets = workflow.Offsets(c.Workers()) })
	asked := c.CreatedAt.Add(-revokedLate).UnixMicro()
	return slices.ContainsFunc(t.Executions, func(e state.Execution) bool {
		return e.RevokedAt != 0 && e.RevokedAt-offsets[workflow.Host(e.Worker)] >= asked
	})
}

// spaceTime is the diagram of a task, of the one that sent it, of those that it sent, and of commands about it.
func (p *taskPage) spaceTime(ctx context.Context, t *state.Task, f family, commands []history.Command, timed bool) (templates.SpaceTime, error) {
	d := p.newDiagram()
	if _, err := d.add(ctx, t, true); err != nil {
		return templates.SpaceTime{}, err
	}
	for i := range commands {
		events := commandEvents(&commands[i])
		if len(events) > 0 && d.revoked(&commands[i], t) {
			events[0].Revokes = t.ID
		}
		d.events = append(d.events, events...)
	}
	if f.parent != nil {
		if _, err := d.add(ctx, f.parent, false); err != nil {
			return templates.SpaceTime{}, err
		}
	}
	drawn := 0
	for i := range f.children {
		ok, err := d.add(ctx, &f.children[i], false)
		if err != nil {
			return templates.SpaceTime{}, err
		}
		if !ok {
			break
		}
		drawn++
	}
	return d.view(templates.TaskPath(t.ID), nil, timed).Children(drawn, len(t.Children)), nil
}
