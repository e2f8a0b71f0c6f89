package web

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
	"github.com/umbelhq/umbel/web/search"
)

// viewTimeout is how long a page waits for the numbers beside views.
const viewTimeout = 30 * time.Millisecond

// tasksPage lists tasks.
type tasksPage struct {
	*common
	charts     *charts
	counts     *background[history.Count] // of the tasks of views
	breakdowns *cache[breakdown]          // by query
}

func (p *tasksPage) load(ctx context.Context, a address) (page, error) {
	q, err := query.Parse(a.query)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return p.invalid(ctx, q, a.query, wrong)
	}
	pg, err := p.list(ctx, q)
	if unknown, ok := errors.AsType[lang.UnresolvedError](err); ok {
		return p.invalid(ctx, q, a.query, &query.Error{Param: "q", Message: unknown.Error(), Query: unknown.In(strings.TrimSpace(a.query.Get("q")))})
	}
	return pg, err
}

func (p *tasksPage) list(ctx context.Context, q query.Tasks) (page, error) {
	v := templates.Tasks{Query: p.query(q), Columns: p.columnMenu(q), Table: p.table(q), Exports: p.exports(q)}
	pg := page{url: q.URL("/tasks"), title: "Tasks", section: templates.SectionTasks}
	v.Chart = p.charts.chart(ctx, q.Query, q.Chart, func(c query.Chart) string {
		return q.First().Draw(c).URL(p.urls.Prefix + "/tasks")
	})
	v.Chart.Strip = true
	var all breakdown
	p.backend.View(func(c state.View) {
		all = breakdown{c.Counts(), c.LowWaterMark() == nil}
	})
	var err error
	if v.States, v.Facets, err = p.facets(ctx, q, all); err != nil {
		return page{}, err
	}
	found, err := search.Read(ctx, p.backend, q, p.now())
	if err != nil {
		return page{}, err
	}
	v.Views = p.tabs(ctx, q)
	if err := p.backend.History().MarkDuplicates(ctx, found.Tasks); err != nil {
		p.log.WarnContext(ctx, "mark duplicates", "error", err)
	}
	v.Table.Outbox = p.inOutboxes(found.Tasks)
	v.Table.Words = q.Query.Words()
	v.Tasks, v.Total, v.Searched = found.Tasks, found.Total, found.Searched
	v.Sorted = sorted(q.Sort)
	if p.urls.CanSend {
		v.Selection = &templates.Selection{Query: q.Narrowed().String()}
	}
	p.link(&v, q, found.TaskPage)
	if len(found.Tasks) == 0 && q.From == nil && found.Next == nil {
		v.Broader = p.broader(ctx, q)
	}
	pg.view = v
	return pg, nil
}

// inOutboxes returns what applications' outboxes tell of tasks, by id. It reads no database.
func (p *tasksPage) inOutboxes(tasks []state.Task) map[string]*templates.TaskOutbox {
	if p.appOutboxes == nil {
		return nil
	}
	known := make(map[string]*templates.TaskOutbox)
	for i := range tasks {
		if trace, ok := p.appOutboxes.Trace(tasks[i].ID); ok {
			known[tasks[i].ID] = p.fromOutbox(trace)
		}
	}
	return known
}

// link says where the neighbouring pages are.
func (p *tasksPage) link(v *templates.Tasks, q query.Tasks, found history.TaskPage) {
	path := p.urls.Prefix + "/tasks"
	if q.From != nil {
		v.Newest = q.First().URL(path)
	}
	if found.Prev != nil {
		v.Newer = q.After(found.Prev, true).URL(path)
	}
	if found.Next != nil {
		v.Older = q.After(found.Next, false).URL(path)
	}
}

func (p *tasksPage) query(q query.Tasks) templates.TaskQuery {
	return templates.TaskQuery{
		Text:     q.Text,
		Filtered: q.Filtered(),
		Hidden:   hidden(q),
		Clear:    q.Where(lang.Query{}).URL(p.urls.Prefix + "/tasks"),
	}
}

// hidden are the parameters beside the query that a form carries on.
func hidden(q query.Tasks) []templates.Param {
	v, err := url.ParseQuery(q.First().Canonical())
	if err != nil {
		return nil
	}
	var list []templates.Param
	for _, name := range []string{"sort", "cols", "chart", "since", "until", "limit"} {
		if v.Has(name) {
			list = append(list, templates.Param{Name: name, Value: v.Get(name)})
		}
	}
	return list
}

func (p *tasksPage) exports(q query.Tasks) []templates.Link {
	q.Limit = 0
	path := q.First().URL(p.urls.Prefix + "/api/v1/tasks/export")
	join := "?"
	if q.Canonical() != "" {
		join = "&"
	}
	list := []templates.Link{
		{Text: "CSV, these columns", Href: path + join + "format=csv"},
		{Text: "JSONL, all fields", Href: path + join + "format=jsonl"},
	}
	if !p.urls.HasTraces {
		return list
	}
	hour := p.now().Add(-time.Hour).Truncate(time.Minute)
	return append(list,
		templates.Link{Text: "Trace of these tasks", Href: p.traceURL(url.Values{"q": {q.Narrowed().String()}})},
		templates.Link{Text: "Trace of the last hour, all tasks", Href: p.traceURL(url.Values{"since": {query.FormatInstant(hour)}})},
	)
}

// traceURL is where a trace is saved.
func (p *tasksPage) traceURL(of url.Values) string {
	return p.urls.Prefix + apiPath + "/trace?" + of.Encode()
}

// broader looks for queries with one condition less that do match something.
func (p *tasksPage) broader(ctx context.Context, q query.Tasks) []templates.BroaderQuery {
	const most = 6
	ctx, cancel := context.WithTimeout(ctx, search.CountTimeout)
	defer cancel()
	all := q.Query.Conditions()
	if q.Query.All() || len(all) > most {
		return nil
	}
	var found []templates.BroaderQuery
	for i, dropped := range all {
		var rest lang.Query
		for j, c := range all {
			if j != i {
				rest = rest.And(c)
			}
		}
		if n, err := p.backend.Count(ctx, rest); err == nil && n.N > 0 {
			found = append(found, templates.BroaderQuery{
				Condition: dropped.String(), Href: q.Where(rest).URL(p.urls.Prefix + "/tasks"), Total: n,
			})
		}
	}
	return found
}
