package web

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/remote"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
)

const (
	queueTasks   = 10              // newest ones on the page of a queue
	queuePeek    = 20              // messages that are looked at
	messagesAge  = 3 * time.Second // for how long they are shown without looking again
	trendPoints  = 60              // of a queue in the list
	depthPoints  = 360             // on the page of a queue
	hourSeconds  = 3600
	paramHidden  = "hidden"
	sealedBroker = "This broker cannot show waiting messages without reordering them."
)

// queuePages are the list of queues and the page of one.
type queuePages struct {
	*common
	messages *cache[templates.Messages] // that are next, by queue
}

// next returns the messages that are next in a queue.
func (p *queuePages) next(ctx context.Context, queue string) templates.Messages {
	m, _ := p.messages.get(queue, func() (templates.Messages, error) { return p.peek(ctx, queue), nil })
	return m
}

func (p *queuePages) peek(ctx context.Context, queue string) templates.Messages {
	var m templates.Messages
	found, err := p.commands.Client.Peek(ctx, queue, queuePeek)
	switch {
	case errors.Is(err, broker.ErrUnsupported):
		m.Unavailable = sealedBroker
	case errors.Is(err, remote.ErrUnavailable):
		m.Unavailable = "The broker is unavailable."
	case err != nil:
		p.log.WarnContext(ctx, "look into queue", "queue", queue, "error", err)
		m.Unavailable = "The waiting messages could not be read."
	}
	for _, f := range found {
		m.Next = append(m.Next, waiting(f))
	}
	return m
}

// waiting is a message as pages show it.
func waiting(f broker.Publishing) templates.WaitingMessage {
	parsed, err := celery.ParseMessage(f)
	d := templates.WaitingMessage{ID: parsed.ID, Name: parsed.Name, ETA: micros(parsed.ETA), Priority: int(f.Priority)}
	if err != nil {
		d.Error = err.Error()
		return d
	}
	d.Args, d.Kwargs = celery.Repr(parsed.Args), celery.Repr(parsed.Kwargs)
	return d
}

// load lists queues.
func (p *queuePages) load(_ context.Context, a address) (page, error) {
	all := a.query.Get(paramHidden) == "true"
	s := p.commands.Queues.Snapshot()
	v := templates.Queues{All: all, Poll: queuePoll(s)}
	for _, q := range s.Queues {
		if q.Hidden {
			v.Hidden++
		}
		if all || !q.Hidden {
			v.Queues = append(v.Queues, queue(q, s.At, trendPoints))
		}
	}
	pg := page{
		url: "/queues", title: "Queues", section: templates.SectionQueues, view: v,
		version: p.stateVersion(),
	}
	if all {
		pg.url += "?" + paramHidden + "=true"
	}
	return pg, nil
}

// queuePoll is the last poll of queues.
func queuePoll(s queues.Snapshot) templates.QueuePoll {
	l := templates.QueuePoll{
		At: micros(s.At), Source: s.Source, Error: s.Error, Kind: s.Broker.Kind, Version: s.Broker.Version,
		Memory: s.Broker.Memory, Most: s.Broker.MemoryLimit, Clients: s.Broker.Clients,
		Warnings: slices.Concat(s.Broker.Warnings, s.Warnings),
	}
	if t := s.Broker.VisibilityTimeout; t != nil {
		l.Visibility = new(t.Seconds())
	}
	return l
}

// queue is a queue as pages show it, with its depths in at most so many points.
func queue(q queues.Queue, at time.Time, points int) templates.Queue {
	d := templates.Queue{
		Name: q.Name, Missing: q.Missing, Error: q.Error, Ready: q.Ready, Unacked: q.Unacked, Consumers: q.Consumers,
		Workers: q.Workers, WorkersKnown: q.WorkersKnown, In: q.InRate, Out: q.OutRate, RatesFrom: q.RatesFrom,
		Age: inSeconds(q.Age), AtLeast: inSeconds(q.AgeAtLeast), AtMost: inSeconds(q.AgeAtMost), Drain: inSeconds(q.DrainTime),
		Type: q.Type, State: q.State, MaxPriority: q.MaxPriority, Durable: q.Durable, Warnings: q.Warnings,
		Depths: depths(q.Depths, at, points),
	}
	for _, s := range q.Steps {
		d.Steps = append(d.Steps, templates.QueueStep{Priority: s.Priority, Ready: s.Ready})
	}
	if q.OldestUnacked != nil {
		d.OldestUnacked = micros(*q.OldestUnacked)
	}
	if q.RedeliveredAt != nil {
		d.Restore = micros(*q.RedeliveredAt)
	}
	return d
}

func inSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
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
	s := p.commands.Queues.Snapshot()
	i := slices.IndexFunc(s.Queues, func(q queues.Queue) bool { return q.Name == name })
	if i < 0 {
		return page{}, unknown(p.unknownQueue(name))
	}
	found, err := p.backend.Tasks(ctx, history.TaskRequest{
		Query: lang.New(lang.Equal(lang.Queue, name)), Limit: queueTasks, Now: p.now(),
	})
	if err != nil {
		return page{}, err
	}
	return page{
		url: templates.QueuePath(name), title: name, section: templates.SectionQueues,
		view: templates.QueuePage{
			Queue: queue(s.Queues[i], s.At, depthPoints), Poll: queuePoll(s), Waiting: p.next(ctx, name), Tasks: found.Tasks,
		},
		version: p.stateVersion(),
	}, nil
}

// unknownQueue proposes a queue of nearly the same name.
func (p *queuePages) unknownQueue(name string) templates.Problem {
	v := templates.Problem{
		Title: "Unknown queue",
		Message: "No queue named " + name + " is known: no worker consumes from it, no event mentions it, and the broker does not " +
			"list it.",
		Back: p.urls.Prefix + "/queues", BackText: "All queues",
	}
	var names []string
	for _, q := range p.commands.Queues.Snapshot().Queues {
		names = append(names, q.Name)
	}
	if near := lang.Nearest(name, names); near != "" {
		v.Similar = []templates.Link{{Text: near, Href: p.urls.Prefix + templates.QueuePath(near)}}
	}
	return v
}
