package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/calls"
	"github.com/umbelhq/umbel/web/query"
)

const (
	comparedTasks = 100     // tasks of a group that its page reads
	judgedTasks   = 20      // and that the page of one of its tasks reads
	paramSaved    = "saved" // of the page of excluded fields after some were saved: the name of the task
)

// duplicatePages are the pages of groups of tasks that repeat work.
type duplicatePages struct{ *common }

// load lists groups. What cannot be read is said on the page.
func (p *duplicatePages) load(ctx context.Context, a address) (page, error) {
	path := p.urls.Prefix + "/duplicates"
	q, err := query.ParseDuplicates(a.query)
	if err != nil {
		return page{}, invalid(err, templates.Link{Text: "All duplicates", Href: path})
	}
	v := templates.Duplicates{Then: p.instant != nil, Verdict: q.Verdict, Name: q.Name, Most: q.Most, All: query.Duplicates{Most: q.Most}.URL(path)}
	pg := page{url: q.URL("/duplicates"), title: "Duplicates", section: templates.SectionDuplicates}
	first := q
	first.After = nil
	p.link(&v, first, path)
	found, err := p.backend.Duplicates(ctx, q.Request())
	if err != nil {
		p.log.WarnContext(ctx, "list duplicates", "error", err)
		v.Unreadable, pg.status = true, http.StatusServiceUnavailable
	}
	rules, err := p.backend.History().DuplicateRules(ctx)
	if err != nil {
		p.log.WarnContext(ctx, "list excluded fields", "error", err)
	}
	v.Groups, v.Stats, v.Rules = p.withCalls(found.Groups), found.Stats, len(rules)
	if q.After != nil {
		v.Newest = first.URL(path)
	}
	if found.Next != nil {
		q.After = found.Next
		v.Older = q.URL(path)
	}
	pg.view = v
	return pg, nil
}

// link adds the addresses of the first pages of the list with another verdict or order.
func (p *duplicatePages) link(v *templates.Duplicates, q query.Duplicates, path string) {
	for _, verdict := range append([]duplicates.Verdict{""}, duplicates.WorstFirst()...) {
		other := q
		other.Verdict = verdict
		v.Verdicts = append(v.Verdicts, templates.DuplicateChoice{Verdict: verdict, Href: other.URL(path)})
	}
	other := q
	other.Most = !q.Most
	if q.Most {
		v.Sorts.Newest = other.URL(path)
	} else {
		v.Sorts.Tasks = other.URL(path)
	}
}

// loadGroup shows one group.
func (p *duplicatePages) loadGroup(ctx context.Context, a address) (page, error) {
	key, ok := history.ParseDuplicateKey(a.name)
	if !ok {
		return page{}, p.unknownGroup()
	}
	g, err := p.backend.DuplicateGroup(ctx, key, comparedTasks)
	if errors.Is(err, history.ErrNotFound) {
		return page{}, p.unknownGroup()
	}
	if err != nil {
		return page{}, err
	}
	v := templates.Duplicate{DuplicateGroup: p.withCalls([]view.DuplicateGroup{g})[0]}
	return page{url: templates.DuplicatePath(key), title: v.Title(), section: templates.SectionDuplicates, view: v}, nil
}

// of returns the group that a task is in, nil if it is in none or that cannot be read.
func (p *duplicatePages) of(ctx context.Context, id string) *view.DuplicateGroup {
	if !p.audience.Payload {
		return nil
	}
	g, err := p.backend.DuplicateGroup(ctx, history.DuplicateKey{TaskID: id}, 1)
	if err == nil && len(g.Tasks) > 0 && g.Tasks[0].CallID.Known() {
		g, err = p.backend.DuplicateGroup(ctx, history.DuplicateKey{Call: g.Tasks[0].CallID}, judgedTasks)
	}
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil
	case err != nil:
		p.log.WarnContext(ctx, "read duplicates of a task", "error", err)
		return nil
	case g.N < 2 && g.Marks&(state.Redelivery|state.Resend) == 0:
		return nil
	}
	return &g
}

func (p *duplicatePages) unknownGroup() error {
	return unknown(templates.Problem{
		Title:   "Unknown group",
		Message: "No retained task has this call. Groups are removed with their tasks, and change when fields are excluded.",
		Back:    p.urls.Prefix + "/duplicates", BackText: "All duplicates",
	})
}

// loadRules lists the fields that are excluded.
func (p *duplicatePages) loadRules(ctx context.Context, a address) (page, error) {
	rules, err := p.backend.History().DuplicateRules(ctx)
	if err != nil {
		return page{}, err
	}
	v := templates.DuplicateRules{Rules: rules}
	for _, r := range rules {
		if r.Name == a.query.Get(paramSaved) {
			v.Saved = r.Name
		}
	}
	return page{
		url: "/duplicates/rules", title: "Excluded fields", section: templates.SectionDuplicates,
		view: v,
	}, nil
}

// withCalls adds the arguments of the newest task of each group, with secrets masked.
func (p *common) withCalls(groups []view.DuplicateGroup) []templates.DuplicateGroup {
	texts := calls.OfGroups(p.redactor, groups)
	list := make([]templates.DuplicateGroup, len(groups))
	for i, g := range groups {
		list[i] = templates.DuplicateGroup{DuplicateGroup: g, Call: texts[i]}
	}
	return list
}
