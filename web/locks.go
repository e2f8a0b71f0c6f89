package web

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/templates"
)

const (
	maxLockRows = 500
	paramShow   = "show"
)

// locksPage lists the locks of tasks that run once.
type locksPage struct{ *common }

// load lists the locks that match every word of find, and have the mark, the state or the kind that show names.
func (p *locksPage) load(ctx context.Context, a address) (page, error) {
	pg := page{url: "/locks", title: "Locks", section: templates.SectionDuplicates}
	if p.commands.Locks == nil {
		pg.view = templates.Locks{Off: true}
		return pg, nil
	}
	s := p.commands.Locks.Snapshot(ctx)
	find, show := strings.TrimSpace(a.query.Get(paramFind)), a.query.Get(paramShow)
	v := templates.Locks{Find: find, Total: len(s.Locks), Read: s}
	v.Read.Locks = nil
	v.Filter.Chosen = show
	if show != "" {
		v.Filter.Hidden = []templates.Param{{Name: paramShow, Value: show}}
	}
	counts := make(map[string]int)
	for i := range s.Locks {
		l := &s.Locks[i]
		if !finds(l, find) {
			continue
		}
		counts[""]++
		for _, of := range filters(l) {
			counts[of]++
		}
		if show != "" && !matchesFilter(l, show) {
			continue
		}
		if v.Found++; len(v.Locks) < maxLockRows {
			v.Locks = append(v.Locks, *l)
		}
	}
	v.Filter.List = p.lockChoices(find, show, counts)
	pg.url, pg.view = locksURL(find, show), v
	return pg, nil
}

// locksURL is the address of a list of locks, below the prefix.
func locksURL(find, show string) string {
	v := url.Values{}
	if find != "" {
		v.Set(paramFind, find)
	}
	if show != "" {
		v.Set(paramShow, show)
	}
	if len(v) == 0 {
		return "/locks"
	}
	return "/locks?" + v.Encode()
}

// lockChoices are the filters, without those that match nothing.
func (p *locksPage) lockChoices(find, show string, counts map[string]int) []templates.LockChoice {
	list := []templates.LockChoice{{Label: "All"}}
	for _, m := range locks.MarkKinds() {
		list = append(list, templates.LockChoice{Value: string(m), Label: templates.LockMarkLabel(m)})
	}
	for _, s := range []locks.State{locks.Processing, locks.Completed} {
		list = append(list, templates.LockChoice{Value: string(s), Label: strings.ToUpper(string(s[:1])) + string(s[1:])})
	}
	for _, k := range locks.Kinds() {
		list = append(list, templates.LockChoice{Value: string(k), Label: templates.LockKindLabel(k)})
	}
	shown := list[:0]
	for _, c := range list {
		c.Count, c.Href = counts[c.Value], p.urls.Prefix+locksURL(find, c.Value)
		if c.Count > 0 || c.Value == show || c.Value == "" {
			shown = append(shown, c)
		}
	}
	return shown
}

// filters are the values of show that match a lock.
func filters(l *locks.Lock) []string {
	list := []string{string(l.State), string(l.Kind)}
	for _, m := range l.Marks {
		list = append(list, string(m.Kind))
	}
	return list
}

func matchesFilter(l *locks.Lock, show string) bool {
	return slices.Contains(filters(l), show)
}

// finds reports whether every word of find is in what a row shows of its lock.
func finds(l *locks.Lock, find string) bool {
	shown := []string{l.Key, l.Name}
	if h := l.Holder; h != nil {
		shown = append(shown, h.TaskID, h.Worker)
	}
	text := strings.ToLower(strings.Join(shown, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(find)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
