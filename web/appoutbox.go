package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
)

const (
	appOutboxPath = "/outbox/app"
	appDeadPath   = "/outbox/app/dead"
	samplePoints  = 180         // of a chart at most
	appOutboxAge  = time.Minute // for which a page of rows is kept, unless the outbox was read again
	appOutboxMost = 16          // pages of rows that are kept: one can have megabytes of arguments
)

// appOutboxPages are the rows and the dead letters of applications' outboxes.
type appOutboxPages struct {
	*common
	rows  *cache[appRows]
	chart *cache[[]history.OutboxSample]
}

// appRows is a page of an outbox, or why it cannot be read.
type appRows struct {
	rows outboxwatch.RowPage
	dead outboxwatch.DeadLetterPage
	err  error
}

// appOutboxAlerts are the outboxes whose relay has stopped, which every page shows.
func (p *common) appOutboxAlerts() []templates.AppOutboxAlert {
	if p.appOutboxes == nil {
		return nil
	}
	list := []templates.AppOutboxAlert{}
	for _, o := range p.appOutboxes.Snapshot() {
		if o.Relay.Stopped {
			list = append(list, templates.AppOutboxAlert{Name: o.Name, Ready: o.Stats.Ready(), IdleSince: o.Relay.IdleSince})
		}
	}
	return list
}

// load lists the rows of an outbox.
func (p *appOutboxPages) load(ctx context.Context, a address) (page, error) {
	return p.page(ctx, a, false)
}

// loadDead lists the dead letters of an outbox.
func (p *appOutboxPages) loadDead(ctx context.Context, a address) (page, error) {
	return p.page(ctx, a, true)
}

func (p *appOutboxPages) page(ctx context.Context, a address, dead bool) (page, error) {
	path, title := appOutboxPath, "Application outbox"
	if dead {
		path, title = appDeadPath, "Dead letters of the application"
	}
	q, err := query.ParseAppOutbox(a.query)
	if err != nil {
		return page{}, invalid(err, templates.Link{Text: title, Href: p.urls.Prefix + path})
	}
	o, err := p.outboxOf(q.Outbox)
	if err != nil {
		return page{}, err
	}
	if !p.audience.Payload {
		o = payload.AppOutbox(o)
	}
	v := templates.AppOutbox{Outbox: o, Dead: dead, Name: q.Name, State: string(q.State), Several: len(p.appOutboxes.Snapshot()) > 1}
	v.Tabs = p.outboxTabs(o.Name)
	list := p.list(ctx, o, q, dead)
	v.Rows, v.DeadLetters, v.Searched = list.rows.Rows, list.dead.DeadLetters, cmp.Or(list.rows.Searched, list.dead.Searched)
	pg := page{url: q.URL(path), title: title, section: templates.SectionOutbox}
	if list.err != nil {
		wrong, _ := errors.AsType[*outboxwatch.Error](list.err)
		v.Unreadable, pg.status = wrong, http.StatusServiceUnavailable
	}
	full := p.urls.Prefix + path
	v.States = appStates(q, p.urls.Prefix, o.Stats, dead)
	if q.Cursor != "" {
		v.Newest = q.First().URL(full)
	}
	if next := cmp.Or(list.rows.Next, list.dead.Next); next != "" {
		to := q
		to.Cursor = next
		v.Older = to.URL(full)
	}
	v.Chart = p.samples(ctx, o.Name, q, full)
	pg.view = v
	return pg, nil
}

// outboxOf returns what is known of an outbox, of the first one if name is empty.
func (p *appOutboxPages) outboxOf(name string) (outboxwatch.Outbox, error) {
	all := p.appOutboxes.Snapshot()
	for _, o := range all {
		if o.Name == name || name == "" {
			return o, nil
		}
	}
	return outboxwatch.Outbox{}, unknown(templates.Problem{
		Title: "Unknown outbox", Message: "Umbel watches no outbox of this name.", Back: p.urls.Prefix + appOutboxPath, BackText: "Application outbox",
	})
}

// outboxTabs lead to Umbel's commands and to every application's outbox. current is empty on the page of commands.
func (p *common) outboxTabs(current string) []templates.Choice {
	if p.appOutboxes == nil {
		return nil
	}
	list := []templates.Choice{{Text: "Umbel’s commands", Href: p.urls.Prefix + "/outbox", Current: current == ""}}
	all := p.appOutboxes.Snapshot()
	for i, o := range all {
		c := templates.Choice{Text: "Application outbox", Href: p.urls.Prefix + appOutboxPath, Current: o.Name == current}
		if len(all) > 1 {
			c.Text += " " + o.Name
		}
		if i > 0 {
			c.Href = query.AppOutbox{Outbox: o.Name}.URL(c.Href)
		}
		list = append(list, c)
	}
	return list
}

// list reads rows or dead letters once for each time that the outbox is read, however many look at them. While it cannot
// be read, they are not either.
func (p *appOutboxPages) list(ctx context.Context, o outboxwatch.Outbox, q query.AppOutbox, dead bool) appRows {
	if o.Err != nil {
		return appRows{err: o.Err}
	}
	if o.ReadAt.IsZero() {
		return appRows{}
	}
	key := strconv.FormatBool(dead) + strconv.FormatInt(o.ReadAt.UnixNano(), 10) + " " + o.Name + " " + q.URL("")
	found, _ := p.rows.get(key, func() (r appRows, gone error) {
		limit := cmp.Or(q.Limit, query.DefaultLimit)
		if dead {
			r.dead, r.err = p.appOutboxes.DeadLetters(ctx, o.Name, outboxwatch.DeadLetterRequest{Name: q.Name, After: q.Cursor, Limit: limit, Payload: p.audience.Payload})
			if !p.audience.Payload {
				r.dead.DeadLetters = payload.DeadLetters(r.dead.DeadLetters)
			}
		} else {
			r.rows, r.err = p.appOutboxes.Rows(ctx, o.Name, outboxwatch.RowRequest{State: q.State, Name: q.Name, After: q.Cursor, Limit: limit, Payload: p.audience.Payload})
		}
		if gone = context.Cause(ctx); errors.Is(gone, context.Canceled) {
			return r, gone // whoever asked has left, which says nothing of the database
		}
		if r.err != nil {
			p.log.WarnContext(ctx, "list rows of an outbox", "outbox", o.Name, "error", r.err)
		}
		return r, nil // an error is kept too: the database is not asked again at once
	})
	return found
}

// appStates are the choices of states.
func appStates(q query.AppOutbox, prefix string, s outboxwatch.Stats, dead bool) []templates.AppState {
	to := q.First()
	to.State = ""
	list := []templates.AppState{{Label: "All", Href: to.URL(prefix + appOutboxPath), Count: s.Total(), Current: !dead && q.State == ""}}
	for _, state := range outboxwatch.States() {
		to.State = state
		list = append(list, templates.AppState{
			Label: templates.AppStateWord(state), Href: to.URL(prefix + appOutboxPath), Count: s.States[state], Current: !dead && q.State == state,
		})
	}
	to.State = ""
	return append(list, templates.AppState{Label: "Dead letters", Href: to.URL(prefix + appDeadPath), Count: s.DeadLetters, Current: dead})
}

// samples draws how full an outbox was.
func (p *appOutboxPages) samples(ctx context.Context, name string, q query.AppOutbox, path string) templates.Chart {
	c := q.Chart
	link := func(c query.Chart) string {
		to := q
		to.Chart = c
		return to.URL(path)
	}
	off := c
	off.Off = !c.Off
	v := templates.Chart{Title: chartOfOutbox(c.Measure), Off: c.Off, Toggle: templates.Link{Text: "Hide", Href: link(off)}, Seconds: c.Measure == query.MeasureAge}
	if c.Off {
		v.Toggle.Text = "Show"
		return v
	}
	for _, last := range query.OutboxRanges() {
		other := c
		other.Last, other.Span = last, query.Span{}
		current := c.To == 0 && cmp.Or(c.Last, query.OutboxRanges()[0]) == last
		v.Ranges = append(v.Ranges, templates.Choice{Text: last, Href: link(other), Current: current})
	}
	for _, m := range query.OutboxMeasures() {
		other := c
		other.Measure = m
		v.Shows = append(v.Shows, templates.Choice{Text: measureWord(m), Href: link(other), Current: cmp.Or(c.Measure, query.MeasureReady) == m})
	}
	spanned(&v, c, link)
	p.sampleRows(ctx, &v, name, c)
	return v
}

// sampleRows adds the steps of a chart, newest first.
func (p *appOutboxPages) sampleRows(ctx context.Context, v *templates.Chart, name string, c query.Chart) {
	now := p.now()
	from, to := c.Range(now)
	v.Step = sampleStep(to.Sub(from))
	from = from.Truncate(v.Step)
	key := name + " " + c.URL("") + " " + strconv.FormatInt(now.Unix()/5, 10)
	found, err := p.chart.get(key, func() ([]history.OutboxSample, error) {
		return p.appOutboxes.Samples(ctx, name, from, to, v.Step)
	})
	if err != nil {
		p.log.WarnContext(ctx, "chart not read", "error", err)
		v.Note = "unavailable"
		return
	}
	column := templates.ChartColumn{Name: measureWord(cmp.Or(c.Measure, query.MeasureReady)), Color: "--started"}
	v.Marks = p.marks(ctx, from, to)
	if c.Measure == query.MeasureDead {
		column.Color = "--failure"
	}
	v.Columns = []templates.ChartColumn{column}
	values := make(map[int64]*float64, len(found))
	for _, s := range found {
		values[s.Minute*60] = new(sampleValue(s, c.Measure))
	}
	for at := to.Add(-time.Nanosecond).Truncate(v.Step); !at.Before(from); at = at.Add(-v.Step) {
		v.Rows = append(v.Rows, templates.ChartRow{At: at.UnixMicro(), Cells: []*float64{values[at.Unix()]}, Unfinished: at.Add(v.Step).After(now)})
	}
}

func sampleValue(s history.OutboxSample, measure string) float64 {
	switch measure {
	case query.MeasureAge:
		return s.OldestReady.Seconds()
	case query.MeasureDead:
		return float64(s.DeadLetters)
	}
	return float64(s.Ready)
}

// sampleStep is the shortest step that shows a time in at most samplePoints.
func sampleStep(length time.Duration) time.Duration {
	for _, minutes := range []time.Duration{1, 2, 5, 10, 30, 60, 120} {
		if length <= samplePoints*minutes*time.Minute {
			return minutes * time.Minute
		}
	}
	return (length/samplePoints/time.Hour + 1) * time.Hour
}

func chartOfOutbox(measure string) string {
	switch measure {
	case query.MeasureAge:
		return "Age of the oldest waiting task"
	case query.MeasureDead:
		return "Dead letters"
	}
	return "Waiting tasks"
}

func measureWord(measure string) string {
	switch measure {
	case query.MeasureAge:
		return "oldest"
	case query.MeasureDead:
		return "dead letters"
	}
	return "waiting"
}

// fromOutbox is what an outbox tells of a task to those who look.
func (p *common) fromOutbox(t outboxwatch.Trace) *templates.TaskOutbox {
	if !p.audience.Payload {
		t = payload.Trace(t)
	}
	return &templates.TaskOutbox{Trace: t, Attention: p.appOutboxes.Attention(&t)}
}
