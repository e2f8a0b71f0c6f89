package web

import (
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
)

// pages are all pages and the forms beside them.
type pages struct {
	*common
	routes   []route
	views    *viewsPage
	failing  *failurePages
	forms    *forms
	counts   *background[history.Count] // of the tasks of views
	results  *storedResults             // nil if there is no result backend
	groups   *storedGroups              // likewise
	workers  *workerCounts
	settings *settingsPage
	audits   *idempotencyPage // nil if workers cannot be inspected
	beats    *beats           // nil if nothing is asked
}

// newPages returns the pages of an audience. They share what first reads for open pages, unless that is nil. It has
// changed called after what no event tells of, so that no open page shows for long what was before.
func newPages(o Options, a auth.Audience, urls templates.URLs, first *pages, changed func()) *pages {
	c := &common{
		backend: o.Backend, commands: o.Commands, readOnly: o.ReadOnly || a.Role == auth.Viewer, audience: a, urls: urls,
		alerts: o.Alerts, flow: o.flow, then: o.then, appOutboxes: o.AppOutboxes, beatTables: o.BeatTables, redactor: o.Redactor, auditLog: o.AuditLog,
		version: o.Version, issues: o.Issues, demo: o.Demo, trace: o.Trace, now: o.Now, log: o.Logger,
	}
	c.urls.ReadOnly, c.urls.CanSend, c.urls.HasCommands = c.readOnly, c.service() != nil, o.Commands != nil
	c.urls.IsAdmin, c.urls.HidesPayload = a.Role == auth.Admin, !a.Payload
	c.urls.HasLocks = o.Commands != nil && o.Commands.Locks != nil && a.Payload
	c.urls.HasTraces = o.Past != nil
	c.urls.HasAlerts, c.urls.ReadOnlyAlerts = o.Alerts != nil, o.ReadOnly
	if o.Issues != nil {
		c.urls.Tracker = o.Issues.Host()
	}
	p := &pages{common: c, views: &viewsPage{c}, failing: newFailurePages(c), workers: newWorkerCounts()}
	p.counts = newBackground(&background[history.Count]{
		what: "count of a view", age: time.Minute, kept: 10 * time.Minute, readers: 1, changed: changed, log: o.Logger,
		same: func(a, b history.Count) bool { return a == b },
	})
	var backend results.Backend
	if o.Commands != nil && a.Payload {
		backend = o.Commands.Results
	}
	if backend != nil {
		p.results = newStoredResults(backend, changed, o.Logger)
	}
	if o.Commands != nil {
		p.audits = newIdempotencyPage(c, changed)
	}
	if o.Commands != nil && !o.ReadOnly {
		p.beats = newBeats(c, changed)
	}
	if o.Commands != nil && o.Commands.Results != nil {
		p.groups = newStoredGroups(o.Commands.Results, changed, o.Logger)
	}
	if first != nil {
		p.counts, p.results, p.groups, p.workers = first.counts, first.results, first.groups, first.workers
		p.beats = first.beats
	}
	if first != nil && p.audits != nil {
		p.audits.reports = first.audits.reports
	}
	queues := newQueuePages(c)
	p.forms = &forms{common: c, queues: queues}
	p.routes = p.table(o, queues)
	return p
}

// table lists all kinds of pages.
func (p *pages) table(o Options, queues *queuePages) []route {
	charts := &charts{common: p.common, cache: newCache[rollup.Result](chartAge)}
	queues.charts = charts
	overview := &overviewPage{p.common, charts, p.failing}
	tasks := &tasksPage{p.common, charts, p.counts, newCache[breakdown](breakdownAge)}
	repeated := &duplicatePages{p.common}
	task := &taskPage{p.common, p.failing, repeated, p.results, newCache[[]templates.SimilarRun](similarAge)}
	types := newTypePages(p.common)
	workers := &workerPages{p.common, p.workers, charts}
	workflows := &workflowPages{p.common, p.groups}
	settings := &settingsPage{p.common, o.Limits, o.Peers, newCache[*templates.Plan](planAge)}
	p.settings = settings
	list := []route{
		{pattern: "/", action: auth.View, load: overview.load},
		{pattern: "/tasks", action: auth.View, load: tasks.load},
		{pattern: "/tasks/{id}/compare", action: auth.View, load: task.loadCompare}, // before /tasks/*
		{pattern: "/tasks/*", action: auth.View, load: task.load},
		{pattern: templates.TypesPath, action: auth.View, load: types.load},
		{pattern: templates.TypesPath + "/*", action: auth.View, load: types.loadType},
		{pattern: templates.WorkflowsPath, action: auth.View, load: workflows.load},
		{pattern: templates.WorkflowsPath + "/*", action: auth.View, load: workflows.loadWorkflow},
		{pattern: templates.SchedulesPath, action: auth.View, load: (&schedulesPage{p.common, newCache[schedules.Result](schedulesAge), p.beats}).load},
		{pattern: "/views", action: auth.View, load: p.views.load},
		{pattern: "/failures", action: auth.View, load: p.failing.load},
		{pattern: "/failures/{id}", action: auth.View, load: p.failing.loadGroup},
		{pattern: "/duplicates", action: auth.ReadPayload, load: repeated.load},
		{pattern: "/duplicates/rules", action: auth.ReadPayload, onlyNow: "Excluded fields are kept as they are now, with when each was saved.", load: repeated.loadRules},
		{pattern: "/duplicates/*", action: auth.ReadPayload, load: repeated.loadGroup},
		{pattern: templates.AboutPath, action: auth.View, onlyNow: "This page describes Umbel, and nothing that changes.", load: (&aboutPage{p.common}).load},
		{pattern: "/workers", action: auth.View, load: workers.load},
		{pattern: "/workers/*", action: auth.View, load: workers.loadWorker, visit: workers.visit},
	}
	if p.trace == nil { // which says how it is served nowhere
		list = append(list, route{pattern: "/settings", action: auth.View, onlyNow: "These are Umbel’s own settings and health, which are kept as they are now.", load: settings.load})
	}
	if p.appOutboxes != nil {
		app := &appOutboxPages{p.common, newCache[appRows](appOutboxAge), newCache[[]history.OutboxSample](chartAge)}
		app.rows.most = appOutboxMost
		const why = "The tables of an application are read as they are now; its charts reach back a week."
		list = append(list,
			route{pattern: appOutboxPath, action: auth.View, onlyNow: why, load: app.load},
			route{pattern: appDeadPath, action: auth.View, onlyNow: why, load: app.loadDead})
	}
	if p.alerts != nil {
		list = append(list, route{pattern: "/alerts", action: auth.View, load: (&alertPages{p.common}).load})
	}
	if p.commands != nil || p.then != nil {
		list = append(list,
			route{pattern: "/queues", action: auth.View, load: queues.load},
			route{pattern: "/queues/*", action: auth.View, load: queues.loadQueue})
	}
	if p.commands == nil {
		return list
	}
	outbox := &outboxPages{p.common}
	audit := &auditPage{p.common, newCache[int64](auditAge)}
	list = append([]route{{
		pattern: templates.IdempotencyPath, action: auth.View, onlyNow: "Settings of workers are inspected as they are now.",
		load: p.audits.load, visit: p.audits.visit,
	}}, list...) // before /workers/*
	const commands = "A command is kept as it is now, with when it was created, sent and answered."
	return append(list,
		route{pattern: "/locks", action: auth.ReadPayload, onlyNow: "Locks are read from Redis as they are now.", load: (&locksPage{p.common}).load},
		route{pattern: "/outbox", action: auth.View, onlyNow: commands, load: outbox.load},
		route{pattern: "/outbox/audit", action: auth.ReadAudit, onlyNow: "The audit log never changes: it says when each record was made.", load: audit.load},
		route{pattern: "/outbox/{request}", action: auth.View, onlyNow: commands, load: outbox.loadRequest},
	)
}
