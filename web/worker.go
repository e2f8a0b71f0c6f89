package web

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
)

const (
	recentTasks    = 25  // of one worker
	summedTasks    = 200 // of one worker, for its run times
	recentCommands = 50  // of one worker
	paramRefresh   = "refresh"
	paramFind      = "find"
	refreshTimeout = 3 * time.Second        // for a worker that somebody wants asked now
	askTimeout     = 300 * time.Millisecond // for a worker that was never asked
)

// workerAddress is a tab of the page of a worker.
type workerAddress struct {
	name   string
	tab    templates.WorkerTab
	find   string // on the tab of settings
	differ bool
	chart  query.Chart // on the tab of the history
}

// workerTabs are the tabs that there are, the usual one first.
func (p *workerPages) workerTabs() []templates.WorkerTab {
	if p.commands == nil {
		return []templates.WorkerTab{templates.TabHistory, templates.TabClock}
	}
	return []templates.WorkerTab{
		templates.TabNow, templates.TabHistory, templates.TabQueues, templates.TabTasks, templates.TabConfig,
		templates.TabSystem, templates.TabClock, templates.TabCommands,
	}
}

// inspects reports whether the tab shows an inspection.
func (t workerAddress) inspects() bool {
	switch t.tab {
	case templates.TabNow, templates.TabQueues, templates.TabTasks, templates.TabConfig, templates.TabSystem, templates.TabClock:
		return true
	case templates.TabHistory, templates.TabCommands:
	}
	return false
}

func (t workerAddress) values() url.Values {
	v := url.Values{"tab": {string(t.tab)}}
	if t.find != "" {
		v.Set(paramFind, t.find)
	}
	if t.differ {
		v.Set("differ", "1")
	}
	chart, _ := url.Parse(t.chart.URL(""))
	maps.Copy(v, chart.Query())
	return v
}

// url of the tab, below the prefix. The usual tab needs no name.
func (t workerAddress) url(usual templates.WorkerTab) string {
	if t.tab == usual && t.chart == (query.Chart{}) {
		return templates.WorkerPath(t.name)
	}
	return templates.WorkerPath(t.name) + "?" + t.values().Encode()
}

// parse reads the address of a tab. What is wrong in it shows the usual tab.
func (p *workerPages) parse(a address) workerAddress {
	q := a.query
	t := workerAddress{
		name: a.name, tab: templates.WorkerTab(q.Get("tab")), find: strings.TrimSpace(q.Get(paramFind)), differ: q.Get("differ") == "1",
	}
	if !slices.Contains(p.workerTabs(), t.tab) {
		t.tab = p.workerTabs()[0]
	}
	if t.tab != templates.TabConfig {
		t.find, t.differ = "", false
	}
	if t.tab == templates.TabHistory {
		t.chart, _ = query.ParseChart(q.Get("chart")) // wrong ones show the usual chart
		t.chart.Span, _ = query.ParseSpan(q)
	}
	return t
}

// visit inspects the worker if it has not been inspected yet or the visitor wants it refreshed.
func (p *workerPages) visit(ctx context.Context, a address) string {
	t := p.parse(a)
	if a.query.Get(paramRefresh) != "" {
		p.askWorker(ctx, t)
		return templates.WorkerPath(t.name) + "?" + t.values().Encode()
	}
	if t.inspects() && p.commands != nil {
		p.awaitWorker(ctx, t.name)
	}
	return ""
}

// loadWorker shows a tab of the page of one worker.
func (p *workerPages) loadWorker(ctx context.Context, a address) (page, error) {
	t := p.parse(a)
	v := templates.Worker{Tab: t.tab, Tabs: p.workerTabs()}
	var newest []state.Task
	known := false
	p.backend.View(func(c state.View) {
		v.Worker, known = c.Worker(t.name)
		if t.tab == templates.TabClock {
			v.Clock.History = c.OffsetHistory(t.name)
		}
	})
	if !known {
		return page{}, unknown(p.unknownWorker(t.name))
	}
	if t.tab == templates.TabHistory {
		var err error
		if newest, err = p.newest(ctx, state.Query{Workers: []string{t.name}, Limit: summedTasks}); err != nil {
			return page{}, err
		}
	}
	v.Gaps, v.Drain = p.gaps(t.name), p.drain(ctx, v.Worker)
	if v.Worker.Status != state.Offline {
		v.Actions = p.workerActions()
	} else {
		v.Forget = p.service() != nil
		v.LastReport = workers.LastReported(v.Worker)
	}
	switch {
	case t.tab == templates.TabHistory:
		v.Chart = p.workerChart(ctx, t)
		v.Tasks, v.Runs = newest[:min(len(newest), recentTasks)], runTimes(newest)
	case t.tab == templates.TabCommands:
		v.Commands = p.workerCommands(ctx, t.name)
	case t.inspects() && p.commands != nil:
		p.inspect(ctx, &v, t)
	}
	return page{
		url: t.url(p.workerTabs()[0]), title: t.name, section: templates.SectionWorkers, view: v,
	}, nil
}

// workerChart draws what a worker did, with its own restarts.
func (p *workerPages) workerChart(ctx context.Context, t workerAddress) templates.Chart {
	v := p.charts.chart(ctx, lang.New(lang.Equal(lang.Worker, t.name)), t.chart, func(c query.Chart) string {
		t.chart = c
		return p.urls.Prefix + t.url(p.workerTabs()[0])
	})
	v.Marks = deploys.Of(v.Marks, t.name)
	return v
}

// drain returns the newest drain of the process of a worker, nil if there is none or it is over.
func (p *workerPages) drain(ctx context.Context, w state.Worker) *command.Drain {
	if p.commands == nil {
		return nil
	}
	d, ok, err := p.commands.DrainOf(ctx, w.Name)
	if err != nil {
		p.log.WarnContext(ctx, "read the drain of a worker", "error", err)
	}
	if !ok || d.PID != 0 && d.PID != w.PID {
		return nil
	}
	return &d
}

// gaps returns where events of a worker are missing.
func (p *workerPages) gaps(name string) []view.Gap {
	var list []view.Gap
	for _, g := range p.backend.Health().Gaps {
		if g.Worker == name {
			list = append(list, g)
		}
	}
	return list
}

// runTimes sums up tasks that have ended by name, those with most tasks first.
func runTimes(tasks []state.Task) []templates.RunTimes {
	const most = 10
	byName := map[string]*templates.RunTimes{}
	seconds := map[string][]float64{}
	for _, t := range tasks {
		if t.Name == nil || !t.State.Final() {
			continue
		}
		r := byName[*t.Name]
		if r == nil {
			r = &templates.RunTimes{Name: *t.Name}
			byName[*t.Name] = r
		}
		r.N++
		if t.State == state.Failure {
			r.Failed++
		}
		if t.RuntimeSeconds != nil {
			seconds[*t.Name] = append(seconds[*t.Name], *t.RuntimeSeconds)
		}
	}
	list := make([]templates.RunTimes, 0, len(byName))
	for name, r := range byName {
		if s := seconds[name]; len(s) > 0 {
			slices.Sort(s)
			r.Median, r.Worst = new(s[len(s)/2]), new(s[len(s)-1])
		}
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b templates.RunTimes) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), most)]
}

// workerCommands are the newest commands for a worker, none if they cannot be read.
func (p *workerPages) workerCommands(ctx context.Context, name string) []history.Command {
	commands, _, err := p.commands.Commands(ctx, history.CommandFilter{Worker: name, Limit: recentCommands})
	if err != nil {
		p.log.WarnContext(ctx, "list commands of a worker", "error", err)
		return nil
	}
	return p.shownCommands(commands)
}

// isOnline reports whether a worker is online. Others are not inspected.
func (p *workerPages) isOnline(name string) bool {
	var w state.Worker
	p.backend.View(func(c state.View) { w, _ = c.Worker(name) })
	return w.Status == state.Online
}

// askWorker waits for a new inspection of a worker.
func (p *workerPages) askWorker(ctx context.Context, t workerAddress) {
	if p.commands == nil || !p.isOnline(t.name) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if t.tab == templates.TabSystem {
		p.commands.Inspector.Report(ctx, t.name)
	}
	p.commands.Inspector.Inspect(ctx, t.name)
}

// awaitWorker waits a little for the first inspection of a worker, so that pages without scripts show it.
func (p *workerPages) awaitWorker(ctx context.Context, name string) {
	if !p.isOnline(name) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for ctx.Err() == nil {
		changed := p.commands.Inspector.Changed()
		if i := p.commands.Inspector.Cached(name); !i.At.IsZero() || len(i.Errors) > 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// unknownWorker proposes workers that share the node's name or its host.
func (p *workerPages) unknownWorker(name string) templates.Problem {
	v := templates.Problem{
		Title:    "Unknown worker",
		Message:  "No event of worker " + name + " has been received since Umbel started.",
		Back:     p.urls.Prefix + "/workers",
		BackText: "All workers",
	}
	node, host, _ := strings.Cut(name, "@")
	var known []state.Worker
	p.backend.View(func(c state.View) { known = c.Workers() })
	for _, w := range known {
		n, h, _ := strings.Cut(w.Name, "@")
		if (strings.EqualFold(n, node) || strings.EqualFold(h, host)) && len(v.Similar) < maxSimilar {
			v.Similar = append(v.Similar, templates.Link{Text: w.Name, Href: p.urls.Prefix + templates.WorkerPath(w.Name)})
		}
	}
	return v
}
