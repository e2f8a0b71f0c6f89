package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
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
	peekAge      = 3 * time.Second // for how long they are shown without looking again
	maxPeeks     = 64              // queues whose messages are remembered
	trendPoints  = 60              // of a queue in the list
	depthPoints  = 360             // on the page of a queue
	hourSeconds  = 3600
	topicHidden  = "queues?hidden=true"
	queryHidden  = "hidden"
	sealedBroker = "Looking into a queue of this broker would change the order of its messages."
)

// peeks keeps what was seen in queues, so that a watched page does not look all the time. It is safe for concurrent
// use.
type peeks struct {
	mu   sync.Mutex
	seen map[string]peeked
}

// peeked is what was seen in a queue.
type peeked struct {
	at       time.Time
	messages templates.Messages
}

// messages are those that are next in a queue.
func (p *pages) messages(ctx context.Context, queue string) templates.Messages {
	k := &p.peeked
	k.mu.Lock()
	defer k.mu.Unlock()
	now := p.now()
	if m, ok := k.seen[queue]; ok && now.Sub(m.at) >= 0 && now.Sub(m.at) < peekAge {
		return m.messages
	}
	if k.seen == nil || len(k.seen) >= maxPeeks {
		k.seen = map[string]peeked{}
	}
	m := p.peek(ctx, queue)
	k.seen[queue] = peeked{now, m}
	return m
}

func (p *pages) peek(ctx context.Context, queue string) templates.Messages {
	var m templates.Messages
	found, err := p.operations.Client.Peek(ctx, queue, queuePeek)
	switch {
	case errors.Is(err, broker.ErrUnsupported):
		m.Unavailable = sealedBroker
	case errors.Is(err, remote.ErrUnavailable):
		m.Unavailable = "The broker cannot be reached now."
	case err != nil:
		p.log.WarnContext(ctx, "look into queue", "queue", queue, "error", err)
		m.Unavailable = "The queue cannot be looked into now."
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

// queuesPage lists queues.
func (p *pages) queuesPage(all bool) page {
	s := p.operations.Queues.Snapshot()
	v := templates.Queues{All: all, Poll: look(s)}
	for _, q := range s.Queues {
		if q.Hidden {
			v.Hidden++
		}
		if all || !q.Hidden {
			v.Queues = append(v.Queues, queue(q, s.At, trendPoints))
		}
	}
	pg := page{
		topic: "queues", address: "/queues", title: "Queues", section: templates.SectionQueues, view: v,
		version: p.clusterVersion(),
	}
	if all {
		pg.topic, pg.address = topicHidden, "/"+topicHidden
	}
	return pg
}

// look is how queues were looked at.
func look(s queues.Snapshot) templates.QueuePoll {
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
		Workers: q.Workers, WorkersKnown: q.Asked, In: q.In, Out: q.Out, RatesFrom: q.RatesFrom,
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
	if q.Restore != nil {
		d.Restore = micros(*q.Restore)
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

// queuePage shows one queue. The error is errUnknown, or that of the history.
func (p *pages) queuePage(ctx context.Context, name string) (page, error) {
	s := p.operations.Queues.Snapshot()
	i := slices.IndexFunc(s.Queues, func(q queues.Queue) bool { return q.Name == name })
	if i < 0 {
		return page{}, errUnknown
	}
	found, err := p.cluster.Tasks(ctx, history.TaskRequest{
		Query: lang.New(lang.Equal(lang.Queue, name)), Limit: queueTasks, Now: p.now(),
	})
	if err != nil {
		return page{}, err
	}
	return page{
		topic: "queue/" + name, address: templates.QueuePath(name), title: name, section: templates.SectionQueues,
		view: templates.QueuePage{
			Queue: queue(s.Queues[i], s.At, depthPoints), Poll: look(s), Waiting: p.messages(ctx, name), Tasks: found.Tasks,
		},
		version: p.clusterVersion(),
	}, nil
}

func (p *pages) queues(w http.ResponseWriter, r *http.Request) {
	p.show(w, r, http.StatusOK, p.queuesPage(r.URL.Query().Get(queryHidden) == "true"))
}

func (p *pages) queue(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	name := param(r, "name")
	pg, err := p.queuePage(ctx, name)
	if errors.Is(err, errUnknown) {
		p.problem(w, r, http.StatusNotFound, p.unknownQueue(name))
		return
	}
	p.showRead(w, r, http.StatusOK, pg, err)
}

// unknownQueue proposes a queue of nearly the same name.
func (p *pages) unknownQueue(name string) templates.Problem {
	v := templates.Problem{
		Title: "Unknown queue",
		Message: "No queue named " + name + " is known: no worker consumes from it, no event tells of it, and the broker does not " +
			"list it.",
		Back: p.site.Prefix + "/queues", BackText: "All queues",
	}
	var names []string
	for _, q := range p.operations.Queues.Snapshot().Queues {
		names = append(names, q.Name)
	}
	if near := lang.Nearest(name, names); near != "" {
		v.Similar = []templates.Link{{Text: near, Href: p.site.Prefix + templates.QueuePath(near)}}
	}
	return v
}
