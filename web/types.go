package web

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
)

const (
	typesAge       = 5 * time.Second  // counters are stored as often
	usualAge       = 10 * time.Minute // of a week, to which an hour is added in an hour
	sampleAge      = 10 * time.Second // of up to 1,500 tasks
	outliers       = 10               // slowest tasks on the page of a type
	maxTypesCached = 8                // tables: one has up to 10,000 types
)

// typePages are the list of task types and the page of one.
type typePages struct {
	*common

	tables  *cache[tasktype.Table]
	usual   *cache[map[string]tasktype.Usual] // by the hour that the week before ends in, and name
	details *cache[tasktype.Detail]           // by span of time and name
	samples *cache[tasktype.Sample]           // by name
}

func newTypePages(c *common) *typePages {
	p := &typePages{c, newCache[tasktype.Table](typesAge), newCache[map[string]tasktype.Usual](usualAge), newCache[tasktype.Detail](typesAge), newCache[tasktype.Sample](sampleAge)}
	p.tables.most, p.usual.most, p.details.most, p.samples.most = maxTypesCached, maxTypesCached, maxTypesCached, maxTypesCached
	return p
}

// load lists types. What cannot be read is said on the page.
func (p *typePages) load(ctx context.Context, a address) (page, error) {
	path := p.urls.Prefix + templates.TypesPath
	q, err := query.ParseTypes(a.query)
	if err != nil {
		return page{}, invalid(err, templates.Link{Text: "All task types", Href: path})
	}
	v := templates.Types{Find: q.Find, Counted: p.counted(q, path), Sorts: typeSorts(q, path), Ranges: typeRanges(q, path)}
	pg := page{url: q.URL(templates.TypesPath), title: "Task types", section: templates.SectionTypes}
	var usual map[string]tasktype.Usual
	var reading sync.WaitGroup
	reading.Go(func() { usual = p.usualBefore(ctx, p.counts(q).Start()) })
	var failures []history.FailureGroup
	if !q.Chosen() { // else they may have failed later
		reading.Go(func() { failures = p.lastFailures(ctx) })
	}
	table, err := p.table(ctx, q)
	reading.Wait()
	if err != nil {
		p.log.WarnContext(ctx, "list task types", "error", err)
		v.Unreadable, pg.status = true, http.StatusServiceUnavailable
	}
	rows, found, more := q.Page(table.Rows(usual, failures))
	v.Table, v.Rows, v.Found, v.All = table, rows, found, len(table.Types)
	v.Counted.From, v.Counted.To = micros(table.From), micros(table.To)
	first := q
	first.After = ""
	if q.After != "" {
		v.First = first.URL(path)
	}
	if more {
		first.After = rows[len(rows)-1].Name
		v.Next = first.URL(path)
	}
	pg.view = v
	return pg, nil
}

// counts is the span of time that a page counts. At an instant it ends with the shortest span of counters that had ended.
func (p *typePages) counts(q query.Types) tasktype.Span { return p.then.TypeSpan(q.Range(p.now())) }

// table returns the counts of all types, which may be a little old.
func (p *typePages) table(ctx context.Context, q query.Types) (tasktype.Table, error) {
	return p.tables.get(spanOf(q).URL(""), func() (tasktype.Table, error) {
		return tasktype.Read(ctx, p.backend.History(), p.counts(q))
	})
}

// usualBefore returns the usual run times of the week before a time, none if they cannot be read; of some names if there are any.
func (p *typePages) usualBefore(ctx context.Context, before time.Time, names ...string) map[string]tasktype.Usual {
	if before.IsZero() {
		return nil
	}
	hour := before.Truncate(time.Hour)
	usual, err := p.usual.get(hour.Format(time.RFC3339)+" "+strings.Join(names, " "), func() (map[string]tasktype.Usual, error) {
		return tasktype.ReadUsual(ctx, p.backend.History(), hour, names...)
	})
	if err != nil {
		p.log.WarnContext(ctx, "usual run times not read", "error", err)
	}
	return usual
}

// lastFailures returns the groups of failures that have failed last, none if they cannot be read.
func (p *typePages) lastFailures(ctx context.Context) []history.FailureGroup {
	found, err := p.backend.History().FailureGroups(ctx, history.FailureRequest{Limit: tasktype.NewestFailures, Now: p.now(), MaxAge: failuresAge})
	if err != nil {
		p.log.WarnContext(ctx, "last failures not read", "error", err)
	}
	return found.Groups
}

// typeSorts are the orders that the heads of columns lead to, by key.
func typeSorts(q query.Types, path string) map[string]templates.Sort {
	return sorts(tasktype.SortKeys(), q.Order(), func(order string) string {
		q.After, q.Sort = "", order
		if order == query.DefaultTypesSort {
			q.Sort = ""
		}
		return q.URL(path)
	}, "name")
}

// spanOf is a query with nothing but its span of time.
func spanOf(q query.Types) query.Types { return query.Types{Last: q.Last, Span: q.Span} }

// counted is the span of time of a query, and the way back from one that was chosen.
func (p *typePages) counted(q query.Types, path string) templates.Counted {
	c := templates.Counted{Then: p.then != nil, Last: cmp.Or(q.Last, query.DefaultTypesLast), Carry: spanOf(q).URL("")}
	if q.Chosen() {
		c.Chosen = &templates.ChartSpan{From: q.From * 1e6, To: q.To * 1e6}
		q.Span, q.After = query.Span{}, ""
		c.Chosen.Href = q.URL(path)
	}
	return c
}

// typeRanges are the spans of time that a page may count.
func typeRanges(q query.Types, path string) []templates.Choice {
	var list []templates.Choice
	current := cmp.Or(q.Last, query.DefaultTypesLast)
	if q.Chosen() {
		current = ""
	}
	for _, last := range query.Ranges() {
		q.Last, q.After, q.Span = last, "", query.Span{}
		if last == query.DefaultTypesLast {
			q.Last = ""
		}
		list = append(list, templates.Choice{Text: last, Href: q.URL(path), Current: last == current})
	}
	return list
}

// loadType shows one type.
func (p *typePages) loadType(ctx context.Context, a address) (page, error) {
	below := templates.TypePath(a.name)
	path := p.urls.Prefix + below
	back := templates.Link{Text: "All task types", Href: p.urls.Prefix + templates.TypesPath}
	q, err := query.ParseTypes(a.query)
	if err != nil {
		return page{}, invalid(err, back)
	}
	q = spanOf(q)
	var (
		d       tasktype.Detail
		sample  tasktype.Sample
		usual   map[string]tasktype.Usual
		reading errgroup.Group
	)
	reading.Go(func() (err error) {
		d, err = p.details.get(q.URL("")+" "+a.name, func() (tasktype.Detail, error) {
			return tasktype.ReadDetail(ctx, p.backend.History(), p.counts(q), a.name)
		})
		return err
	})
	reading.Go(func() (err error) {
		sample, err = p.samples.get(query.Types{Span: q.Span}.URL("")+" "+a.name, func() (tasktype.Sample, error) {
			return tasktype.ReadSample(ctx, p.backend, a.name, q.Finished(), outliers)
		})
		return err
	})
	reading.Go(func() error {
		usual = p.usualBefore(ctx, p.counts(q).Start(), a.name)
		return nil
	})
	if err := reading.Wait(); err != nil {
		return page{}, err
	}
	v := templates.TaskType{
		Name: a.name, Detail: d, Sample: sample, Counted: p.counted(q, path), Ranges: typeRanges(q, path),
	}
	v.Counted.From, v.Counted.To = micros(d.From), micros(d.To)
	if d.Type.Name == "" && sample.Tasks == 0 && !q.Chosen() {
		return page{}, unknown(templates.Problem{
			Title: "Unknown task type", Message: "No task of this name is known " + v.Counted.Phrase() + ".",
			Back: back.Href, BackText: back.Text,
		})
	}
	v.Drift = usual[a.name].Against(d.Type.Run)
	v.Marks = p.marks(ctx, d.From, d.To)
	v.Slots, v.SlotsOf = p.slots(d.Workers)
	return page{url: q.URL(below), title: a.name, section: templates.SectionTypes, view: v}, nil
}

// slots returns how many processes the workers of a type have, and of how many workers that is known.
func (p *typePages) slots(parts []tasktype.Part) (slots int64, known int) {
	var topology remote.Topology
	if p.commands != nil {
		topology = p.commands.Inspector.CachedTopology()
	}
	workers := map[string]state.Worker{}
	p.backend.View(func(c state.View) {
		for _, w := range c.Workers() {
			workers[w.Name] = w
		}
	})
	for i := range parts {
		n := topology.Pools[parts[i].Name].Slots
		if r := workers[parts[i].Name].LastReport; n == nil && r != nil {
			n = r.Slots
		}
		if n != nil {
			slots += *n
			known++
		}
	}
	return slots, known
}
