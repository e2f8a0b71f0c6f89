package web

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/live"
)

const (
	recentTasks     = 25  // of one worker
	summedTasks     = 200 // of one worker, for its run times
	recentCommands  = 50  // of one worker
	paramRefresh    = "refresh"
	paramFind       = "find"
	refreshPatience = 3 * time.Second        // for a worker that somebody wants asked now
	askPatience     = 300 * time.Millisecond // for a worker that was never asked
)

// workerTopic is a tab of the page of a worker.
type workerTopic struct {
	name   string
	tab    templates.WorkerTab
	find   string // on the tab of settings
	differ bool
}

// workerTabs are the tabs that there are, the usual one first.
func (p *pages) workerTabs() []templates.WorkerTab {
	if p.operations == nil {
		return []templates.WorkerTab{templates.TabHistory, templates.TabClock}
	}
	return []templates.WorkerTab{
		templates.TabNow, templates.TabHistory, templates.TabQueues, templates.TabTasks, templates.TabConfig,
		templates.TabSystem, templates.TabClock, templates.TabCommands,
	}
}

// inspects reports whether the tab shows what the worker tells when it is asked.
func (t workerTopic) inspects() bool {
	switch t.tab {
	case templates.TabNow, templates.TabQueues, templates.TabTasks, templates.TabConfig, templates.TabSystem, templates.TabClock:
		return true
	case templates.TabHistory, templates.TabCommands:
	}
	return false
}

func (t workerTopic) values() url.Values {
	v := url.Values{"tab": {string(t.tab)}}
	if t.find != "" {
		v.Set(paramFind, t.find)
	}
	if t.differ {
		v.Set("differ", "1")
	}
	return v
}

// address of the tab, below the prefix.
func (t workerTopic) address() string {
	return templates.WorkerPath(t.name) + "?" + t.values().Encode()
}

// topic names the tab: worker/<name> for the usual one, worker?<query>/<name> for others. No query holds a slash.
func (t workerTopic) topic(usual templates.WorkerTab) string {
	if t.tab == usual {
		return "worker/" + t.name
	}
	return "worker?" + t.values().Encode() + "/" + t.name
}

// workerOfTopic assembles the page of a topic that begins with worker.
func (p *pages) workerOfTopic(ctx context.Context, topic string) (page, error) {
	raw, name, ok := strings.Cut(strings.TrimPrefix(topic, "worker"), "/")
	if !ok {
		return page{}, live.ErrNoTopic
	}
	q, err := url.ParseQuery(strings.TrimPrefix(raw, "?"))
	if err != nil {
		return page{}, live.ErrNoTopic
	}
	usual := p.workerTabs()[0]
	t := workerTopic{
		name: name, tab: cmp.Or(templates.WorkerTab(q.Get("tab")), usual), find: q.Get(paramFind), differ: q.Get("differ") == "1",
	}
	if t.topic(usual) != topic || !slices.Contains(p.workerTabs(), t.tab) {
		return page{}, live.ErrNoTopic
	}
	return p.workerPage(ctx, t)
}

// workerPage assembles a tab. The error is errUnknown.
func (p *pages) workerPage(ctx context.Context, t workerTopic) (page, error) {
	v := templates.Worker{Tab: t.tab, Tabs: p.workerTabs()}
	var version uint64
	var newest []state.Task
	known := false
	p.cluster.View(func(c *state.Cluster) {
		version = c.Version()
		if v.Worker, known = c.Worker(t.name); known && t.tab == templates.TabHistory {
			newest = c.Tasks(state.Query{Workers: []string{t.name}, Limit: summedTasks}).Tasks
		}
	})
	if !known {
		return page{}, errUnknown
	}
	if v.Worker.Status != state.Offline {
		v.Actions = p.workerActions()
	} else {
		v.Forget = p.service() != nil
		v.LastReport = p.lastTold(v.Worker)
	}
	switch {
	case t.tab == templates.TabHistory:
		v.Tasks, v.Runs = newest[:min(len(newest), recentTasks)], runTimes(newest)
	case t.tab == templates.TabCommands:
		v.Commands = p.workerCommands(ctx, t.name)
	case t.inspects() && p.operations != nil:
		p.inspect(&v, t)
	}
	usual := p.workerTabs()[0]
	address := t.address()
	if t.tab == usual {
		address = templates.WorkerPath(t.name)
	}
	return page{
		topic: t.topic(usual), address: address, title: t.name, section: templates.SectionWorkers, view: v, version: version,
	}, nil
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
func (p *pages) workerCommands(ctx context.Context, name string) []templates.WorkerCommand {
	commands, _, err := p.cluster.History().Commands(ctx, history.CommandFilter{Worker: name, Limit: recentCommands})
	if err != nil {
		p.log.WarnContext(ctx, "list commands of a worker", "error", err)
		return nil
	}
	var list []templates.WorkerCommand
	for _, c := range commands {
		m := templates.WorkerCommand{Command: p.command(c)}
		for _, a := range c.Replies {
			if a.Node == name {
				m.Answer, m.OK = a.Text, a.OK
			}
		}
		list = append(list, m)
	}
	return list
}
