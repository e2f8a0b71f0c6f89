package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/columns"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
)

const (
	queueTasks  = 10              // newest ones on the page of a queue
	queuePeek   = 20              // messages that are looked at
	messagesAge = 3 * time.Second // for how long they are shown without looking again
	trendPoints = 60              // of a queue in the list
	depthPoints = 360             // on the page of a queue
	hourSeconds = 3600

	maxEndedQueues = 500             // whose ended tasks are counted apart
	endedAge       = 5 * time.Second // counters are stored as often
)

// queuePages are the list of queues and the page of one.
type queuePages struct {
	*common
	charts   *charts
	messages *cache[command.WaitingMessages] // that are next, by queue
	ended    *cache[rollup.Result]           // tasks of all queues, by span of time
}

func newQueuePages(c *common) *queuePages {
	return &queuePages{common: c, messages: newCache[command.WaitingMessages](messagesAge), ended: newCache[rollup.Result](endedAge)}
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
	q := query.ParseQueues(a.query)
	href := func(q query.Queues) string { return q.URL(p.urls.Prefix + "/queues") }
	others, all, sorted := q, q, q
	others.Hidden, all.Span = !q.Hidden, query.Span{}
	s, err := p.snapshot(ctx)
	if err != nil {
		return page{}, err
	}
	v := templates.Queues{All: q.Hidden, Poll: s, Then: p.then != nil, Others: href(others), Carry: query.Chart{Span: q.Span}.URL("")}
	v.Sorts = sorts(query.QueuesSortKeys(), q.Order(), func(order string) string {
		sorted.Sort = order
		return href(sorted)
	}, "name")
	if q.Chosen() {
		v.Span = &templates.ChartSpan{From: q.From * 1e6, To: q.To * 1e6, Href: href(all)}
	}
	if v.Then {
		v.Sent = p.then.WaitingTasks()
	}
	ended := p.endedBy(ctx, q.Span, &v)
	list := slices.Clone(s.Queues)
	if strings.TrimPrefix(q.Sort, "-") == query.SortFailed {
		sortByFailed(list, q.Sort, ended)
	} else {
		queues.Sort(list, q.Order())
	}
	for _, row := range list {
		if row.Hidden {
			v.Hidden++
		}
		if q.Hidden || !row.Hidden {
			shown := p.shown(row, s, trendPoints)
			shown.Ended = ended[row.Name]
			v.Queues = append(v.Queues, shown)
		}
	}
	return page{url: q.URL("/queues"), title: "Queues", section: templates.SectionQueues, view: v}, nil
}

// endedBy returns how many tasks of each queue ended over a span of time, the last hour if none was chosen.
func (p *queuePages) endedBy(ctx context.Context, span query.Span, v *templates.Queues) map[string][]tasktype.Step {
	chart := query.Chart{Span: span}
	s, err := p.ended.get(chart.URL(""), func() (rollup.Result, error) {
		now := p.now()
		from, to := chart.Range(now)
		return rollup.Read(ctx, p.backend, p.backend.History(), rollup.Request{
			From: from, To: to, Now: now, Read: p.then.ReadAt(), GroupBy: rollup.ByQueue, OmitHistograms: true, MaxSeries: maxEndedQueues,
		})
	})
	if err != nil {
		p.log.WarnContext(ctx, "ended tasks of queues not read", "error", err)
		return nil
	}
	ended := make(map[string][]tasktype.Step, len(s.Series))
	for _, l := range s.Series {
		steps := make([]tasktype.Step, len(l.Points))
		for i := range l.Points {
			at := &l.Points[i]
			v.Observed = v.Observed || at.Observed
			steps[i] = tasktype.Step{Observed: at.Observed, Received: at.Received, Succeeded: at.Succeeded, Failed: at.Failed}
		}
		if l.Name != rollup.Other {
			ended[l.Name] = steps
		}
	}
	v.Counted, v.Step = true, s.Step
	return ended
}

// sortByFailed sorts queues by how many of their tasks failed.
func sortByFailed(list []queues.Queue, order string, ended map[string][]tasktype.Step) {
	columns.Sort(list, order, func(q *queues.Queue) string { return q.Name }, func(q *queues.Queue, _ string) columns.Value {
		succeeded, failed := int64(0), int64(0)
		for _, s := range ended[q.Name] {
			succeeded += s.Succeeded
			failed += s.Failed
		}
		return columns.Value{Known: succeeded+failed > 0, Number: float64(failed)}
	})
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
	below := templates.QueuePath(name)
	chart, _ := query.ParseChart(a.query.Get("chart")) // wrong ones show the usual chart
	chart.Span, _ = query.ParseSpan(a.query)
	v.Carry = query.Chart{Span: chart.Span}.URL("")
	v.Chart = p.charts.chart(ctx, of, chart, func(c query.Chart) string { return c.URL(p.urls.Prefix + below) })
	return page{url: chart.URL(below), title: name, section: templates.SectionQueues, view: v}, nil
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
