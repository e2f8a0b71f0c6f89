package web

import (
	"context"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
)

const (
	queueTasks  = 10              // newest ones on the page of a queue
	queuePeek   = 20              // messages that are looked at
	messagesAge = 3 * time.Second // for how long they are shown without looking again
	trendPoints = 60              // of a queue in the list
	depthPoints = 360             // on the page of a queue
	hourSeconds = 3600
	paramHidden = "hidden"
)

// queuePages are the list of queues and the page of one.
type queuePages struct {
	*common
	messages *cache[command.WaitingMessages] // that are next, by queue
}

// next returns the messages that are next in a queue.
func (p *queuePages) next(ctx context.Context, queue string) command.WaitingMessages {
	if !p.audience.Payload {
		return command.WaitingMessages{Error: auth.Withheld().Message}
	}
	m, _ := p.messages.get(queue, func() (command.WaitingMessages, error) {
		return p.commands.Peek(ctx, queue, queuePeek), nil
	})
	return m
}

// snapshot returns the queues as they were polled last, or as they were at the instant.
func (p *queuePages) snapshot(ctx context.Context) (queues.Snapshot, error) {
	if p.then != nil {
		return p.then.Queues(ctx)
	}
	return p.commands.Queues.Snapshot(), nil
}

// load lists queues.
func (p *queuePages) load(ctx context.Context, a address) (page, error) {
	all := a.query.Get(paramHidden) == "true"
	s, err := p.snapshot(ctx)
	if err != nil {
		return page{}, err
	}
	v := templates.Queues{All: all, Poll: s, Then: p.then != nil}
	if v.Then {
		v.Sent = p.then.WaitingTasks()
	}
	for _, q := range s.Queues {
		if q.Hidden {
			v.Hidden++
		}
		if all || !q.Hidden {
			v.Queues = append(v.Queues, p.shown(q, s, trendPoints))
		}
	}
	pg := page{
		url: "/queues", title: "Queues", section: templates.SectionQueues, view: v,
	}
	if all {
		pg.url += "?" + paramHidden + "=true"
	}
	return pg, nil
}

// shown is a queue with its chart, of the hour before the poll or the instant.
func (p *queuePages) shown(q queues.Queue, s queues.Snapshot, points int) templates.Queue {
	return templates.Queue{Queue: q, Then: p.then != nil, Depths: depths(q.Depths, p.end(s), points)}
}

// end is where charts end.
func (p *queuePages) end(s queues.Snapshot) time.Time {
	if p.then != nil {
		return p.then.Instant()
	}
	return s.At
}

// depths places the depths of the hour before a moment. The deepest of each step stands for it, so that no peak is
// lost.
func depths(list []queues.Point, at time.Time, points int) []templates.Depth {
	step := hourSeconds / points
	var shown []templates.Depth
	for _, p := range list {
		second := hourSeconds - int(at.Sub(p.At)/time.Second)
		if second < 0 || second > hourSeconds {
			continue
		}
		second -= second % step
		if n := len(shown); n > 0 && shown[n-1].Second == second {
			shown[n-1].Ready = max(shown[n-1].Ready, p.Ready)
			continue
		}
		shown = append(shown, templates.Depth{Second: second, Ready: p.Ready})
	}
	return shown
}

// loadQueue shows one queue.
func (p *queuePages) loadQueue(ctx context.Context, a address) (page, error) {
	name := a.name
	s, err := p.snapshot(ctx)
	if err != nil {
		return page{}, err
	}
	v := templates.QueuePage{Poll: s}
	if p.then != nil {
		v.Sent = p.then.WaitingTasks()[name]
	}
	i := slices.IndexFunc(s.Queues, func(q queues.Queue) bool { return q.Name == name })
	if i < 0 {
		return page{}, unknown(p.unknownQueue(name, s.Queues))
	}
	of := lang.New(lang.Equal(lang.Queue, name))
	found, err := p.backend.Tasks(ctx, history.TaskRequest{Query: of, Limit: queueTasks, Now: p.now()})
	if err != nil {
		return page{}, err
	}
	v.Queue, v.Tasks, v.End = p.shown(s.Queues[i], s, depthPoints), found.Tasks, p.end(s)
	if v.Marks = p.marks(ctx, v.End.Add(-hourSeconds*time.Second), v.End); p.then == nil {
		v.Waiting = p.next(ctx, name)
	} else if v.Sent > 0 {
		waiting := history.TaskRequest{Query: of.And(lang.New(lang.Equal(lang.State, string(state.Pending)))), Limit: queuePeek, Now: p.now()}
		if found, err = p.backend.Tasks(ctx, waiting); err != nil {
			return page{}, err
		}
		v.NotReceived = found.Tasks
	}
	return page{url: templates.QueuePath(name), title: name, section: templates.SectionQueues, view: v}, nil
}

// unknownQueue proposes a queue of nearly the same name.
func (p *queuePages) unknownQueue(name string, known []queues.Queue) templates.Problem {
	v := templates.Problem{
		Title: "Unknown queue",
		Message: "No queue named " + name + " is known: no worker consumes from it, no event mentions it, and the broker does not " +
			"list it.",
		Back: p.urls.Prefix + "/queues", BackText: "All queues",
	}
	if p.then != nil {
		v.Message = "No queue named " + name + " was known then, or what was known is not kept."
	}
	var names []string
	for _, q := range known {
		names = append(names, q.Name)
	}
	if near := lang.Nearest(name, names); near != "" {
		v.Similar = []templates.Link{{Text: near, Href: p.urls.Prefix + templates.QueuePath(near)}}
	}
	return v
}
