package rollup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Group is the field that series are grouped by.
type Group string

// The groups. ByState is a single series, since each point has counts by state.
const (
	ByState  Group = "state"
	ByName   Group = "name"
	ByWorker Group = "worker"
	ByQueue  Group = "queue"
)

// Measure is the value that series are ranked by.
type Measure string

// The measures: the number of tasks, and the 95th percentile of how long they waited or ran.
const (
	Count Measure = ""
	Wait  Measure = "wait"
	Run   Measure = "run"
)

// Bounds of a result.
const (
	MaxPoints       = 180
	MaxSampledTasks = 10_000 // tasks read if rollups do not suffice
	maxSeries       = 7      // beside Other, unless a request says otherwise
	maxGroups       = 2_000  // groups while reading
	pageSize        = 500
)

// Tasks lists tasks, newest change first.
type Tasks interface {
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
}

// Request asks for series. From and To are widened to whole steps.
type Request struct {
	Query          query.Query
	From, To       time.Time
	Now            time.Time     // what relative times refer to
	Read           time.Time     // when counters of a Now that is past are looked at: it may be that only longer spans are kept
	GroupBy        Group         // ByState if empty
	OmitHistograms bool          // Wait and Run are not wanted
	MaxSeries      int           // beside Other; 7 if 0
	RankBy         Measure       // series with the most of it come first
	Timeout        time.Duration // for reading tasks, if rollups do not suffice; 0 reads up to MaxSampledTasks
}

// Result counts the events of the tasks that match a query, over time.
type Result struct {
	From, To     time.Time
	Step         time.Duration
	Series       []Series // one, without a name, if grouped by state; else by rank, Other last
	States       []state.State
	SampledTasks int  // how many tasks it was made from, newest first; 0 if from the counters of all
	More         bool // more tasks match
}

// Series is a time series of one group.
type Series struct {
	Name   string // empty if unknown
	Points []Point
}

// Point counts the events of one step.
type Point struct {
	Observed                             bool // a monitor was running
	Received, Succeeded, Failed, Retried int64
	Wait, Run                            Histogram
}

func (p *Point) add(o *Point) {
	p.Observed = p.Observed || o.Observed
	p.Received += o.Received
	p.Succeeded += o.Succeeded
	p.Failed += o.Failed
	p.Retried += o.Retried
	p.Wait.Merge(o.Wait)
	p.Run.Merge(o.Run)
}

// weight ranks a series: how many tasks ended, or the 95th percentile of how long tasks took, in µs; then by how many events
// it counts.
func (l Series) weight(by Measure) [2]int64 {
	var ended, events int64
	var took Histogram
	for i := range l.Points {
		p := &l.Points[i]
		ended += p.Succeeded + p.Failed
		events += p.Received + p.Succeeded + p.Failed + p.Retried
		switch by {
		case Wait:
			took.Merge(p.Wait)
		case Run:
			took.Merge(p.Run)
		case Count:
		}
	}
	if by == Count {
		return [2]int64{ended, events}
	}
	return [2]int64{took.Quantile(.95), events}
}

// Read reads series from rollups, or, if the query asks for more than they hold, from the newest tasks that match.
func Read(ctx context.Context, tasks Tasks, rollups history.RollupReader, r Request) (Result, error) {
	step, span := steps(r)
	b := builder{request: r, groups: map[string]*Series{}}
	b.From = r.From.Truncate(step).UTC()
	b.To = r.To.Add(step - 1).Truncate(step).UTC()
	b.Step = step
	c, counted := conditionsOf(r.Query)
	var err error
	if counted {
		b.States = c.states
		err = b.count(ctx, rollups, c, span)
	} else {
		b.States = countedStates()
		err = b.sample(ctx, tasks)
	}
	if err != nil {
		return Result{}, fmt.Errorf("read series: %w", err)
	}
	return b.series(), nil
}

// steps returns the length of a step, and the span of the rollups that it is made of.
func steps(r Request) (step, span time.Duration) {
	read := r.Now
	if r.Read.After(read) {
		read = r.Read
	}
	lengths := [...]time.Duration{1, 2, 5, 10, 30, 60, 180, 360, 720, 1440}
	for _, n := range lengths {
		step = n * time.Minute
		for _, s := range history.RollupSpans() {
			if step%s.Length == 0 && r.From.After(read.Add(-s.Retention)) {
				span = s.Length
			}
		}
		if span > 0 && r.To.Sub(r.From) <= MaxPoints*step {
			return step, span
		}
	}
	return step, step
}

// countedStates returns the states whose events are counted.
func countedStates() []state.State {
	return []state.State{state.Received, state.Success, state.Failure, state.Retry}
}

// builder adds up series.
type builder struct {
	Result
	request Request
	groups  map[string]*Series
	known   []bool // by step
}

func (b *builder) size() int { return int(b.To.Sub(b.From) / b.Step) }

// at returns the step that a time, in µs since 1970 UTC, falls in, false if it is outside.
func (b *builder) at(micros int64) (int, bool) {
	d := time.UnixMicro(micros).Sub(b.From)
	return int(d / b.Step), d >= 0 && micros < b.To.UnixMicro()
}

// point returns the point of a series at a step.
func (b *builder) point(name string, i int) *Point {
	if b.request.GroupBy == "" || b.request.GroupBy == ByState {
		name = ""
	}
	l := b.groups[name]
	if l == nil && len(b.groups) >= maxGroups {
		name = Other
		l = b.groups[name]
	}
	if l == nil {
		l = &Series{Name: name, Points: make([]Point, b.size())}
		b.groups[name] = l
	}
	return &l.Points[i]
}

func groupOf(g Group, name, worker, queue string) string {
	switch g {
	case ByName:
		return name
	case ByWorker:
		return worker
	case ByQueue:
		return queue
	case ByState:
	}
	return ""
}

// count reads rollups.
func (b *builder) count(ctx context.Context, s history.RollupReader, c conditions, span time.Duration) error {
	b.known = make([]bool, b.size())
	matched := map[[3]string]bool{}
	r := history.RollupRange{
		From: b.From, To: b.To, Span: span, Names: c.names, Workers: c.workers, Queues: c.queues, Wait: !b.request.OmitHistograms, Run: !b.request.OmitHistograms,
		By: c.grouping(b.request.GroupBy),
	}
	return s.Rollups(ctx, r, func(m history.Rollup) error {
		i, ok := b.at(m.At * minute)
		if !ok {
			return nil
		}
		b.known[i] = true
		if m.Received+m.Succeeded+m.Failed+m.Retried == 0 && len(m.Wait)+len(m.Run) == 0 {
			return nil
		}
		k := [3]string{m.Name, m.Worker, m.Queue}
		match, seen := matched[k]
		if !seen {
			match = c.where.Match(&state.Task{Name: optional(m.Name), Worker: optional(m.Worker), Queue: optional(m.Queue)}, b.request.Now)
			matched[k] = match
		}
		if !match {
			return nil
		}
		return b.point(groupOf(b.request.GroupBy, m.Name, m.Worker, m.Queue), i).take(m, c.states)
	})
}

func optional(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

// take adds the counts of a rollup for these states.
func (p *Point) take(m history.Rollup, states []state.State) error {
	for s, n := range map[state.State]struct{ from, to *int64 }{
		state.Received: {&m.Received, &p.Received}, state.Success: {&m.Succeeded, &p.Succeeded},
		state.Failure: {&m.Failed, &p.Failed}, state.Retry: {&m.Retried, &p.Retried},
	} {
		if slices.Contains(states, s) {
			*n.to += *n.from
		}
	}
	if slices.Contains(states, state.Success) {
		if err := p.Run.MergeSaved(m.Run); err != nil {
			return err
		}
	}
	if len(states) == len(countedStates()) { // of which state a wait led to is not counted
		return p.Wait.MergeSaved(m.Wait)
	}
	return nil
}

// sample reads tasks.
func (b *builder) sample(ctx context.Context, s Tasks) error {
	from := b.From.UnixMicro()
	r := history.TaskRequest{
		Query: b.request.Query.And(query.New(query.Between(query.Updated, from, max(from, b.request.Now.UnixMicro())+1))),
		Limit: pageSize, Now: b.request.Now,
	}
	oldest, start := b.request.Now.UnixMicro(), time.Now()
	for {
		page, err := s.Tasks(ctx, r)
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			oldest = min(oldest, page.Tasks[i].UpdatedAt)
			b.task(&page.Tasks[i])
		}
		b.SampledTasks += len(page.Tasks)
		if r.From = page.Next; r.From == nil {
			oldest = from
			break
		}
		late := b.request.Timeout > 0 && time.Since(start) > b.request.Timeout
		if b.SampledTasks >= MaxSampledTasks || page.Searched > 0 || late {
			b.More = true
			break
		}
	}
	b.known = make([]bool, b.size())
	for i := range b.known {
		b.known[i] = b.From.Add(time.Duration(i)*b.Step).UnixMicro() >= oldest
	}
	return nil
}

// task adds what happened to a task.
func (b *builder) task(t *state.Task) {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	name := groupOf(b.request.GroupBy, text(t.Name), text(t.Worker), text(t.Queue))
	count := func(micros int64, f func(p *Point)) {
		if i, ok := b.at(micros); ok && micros != 0 {
			f(b.point(name, i))
		}
	}
	for _, e := range t.Executions {
		count(e.ReceivedAt, func(p *Point) { p.Received++ })
		count(e.FailedAt, func(p *Point) { p.Failed++ })
		count(e.RetriedAt, func(p *Point) { p.Retried++ })
		count(e.SucceededAt, func(p *Point) {
			p.Succeeded++
			if e.RuntimeSeconds != nil {
				p.Run.Add(int64(*e.RuntimeSeconds * 1e6))
			}
		})
	}
	if t.WaitSeconds != nil && *t.WaitSeconds >= 0 {
		count(t.StartedAt, func(p *Point) { p.Wait.Add(int64(*t.WaitSeconds * 1e6)) })
	}
}

// series sorts the series by weight, merges those beyond maxSeries, and sets Observed.
func (b *builder) series() Result {
	var rest *Series
	for _, l := range b.groups {
		if l.Name == Other {
			rest = l
		} else {
			b.Series = append(b.Series, *l)
		}
	}
	weights := make(map[string][2]int64, len(b.Series))
	for _, l := range b.Series {
		weights[l.Name] = l.weight(b.request.RankBy)
	}
	slices.SortFunc(b.Series, func(x, y Series) int {
		a, b := weights[x.Name], weights[y.Name]
		return cmp.Or(slices.Compare(b[:], a[:]), cmp.Compare(x.Name, y.Name))
	})
	most := cmp.Or(b.request.MaxSeries, maxSeries)
	if len(b.Series) > most {
		if rest == nil {
			rest = &Series{Name: Other, Points: make([]Point, b.size())}
		}
		for _, l := range b.Series[most:] {
			for i := range l.Points {
				rest.Points[i].add(&l.Points[i])
			}
		}
		b.Series = b.Series[:most]
	}
	if rest != nil {
		b.Series = append(b.Series, *rest)
	}
	if len(b.Series) == 0 {
		b.Series = []Series{{Points: make([]Point, b.size())}}
	}
	for _, l := range b.Series {
		for i := range l.Points {
			l.Points[i].Observed = b.known[i]
		}
	}
	return b.Result
}
