package web

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
	"github.com/umbelhq/umbel/web/views"
)

// maxFacet bounds how many values of a field are offered.
const maxFacet = 12

// facets offer states, names, workers and queues, each with how many tasks of the query have them. Where not all of
// these were counted, that is the least that there can be.
func (p *tasksPage) facets(ctx context.Context, q query.Tasks, all breakdown) ([]templates.StateChoice, []templates.Facet, error) {
	path := p.urls.Prefix + "/tasks"
	n, err := p.breakdown(ctx, q.Narrowed(), lang.State, all)
	if err != nil {
		return nil, nil, err
	}
	var chips []templates.StateChoice
	for _, s := range templates.States(n.counts.ByState, chosen[state.State](q.Query, lang.State)...) {
		term := lang.Equal(lang.State, string(s))
		chips = append(chips, templates.StateChoice{
			State: s, Count: n.total(n.counts.ByState[s]), On: q.Query.Has(term), Href: q.Toggle(term).URL(path),
		})
	}
	var list []templates.Facet
	for _, f := range []struct {
		field  lang.Field
		label  string
		counts func(state.Counts) map[string]int
	}{
		{lang.Name, "Task", func(c state.Counts) map[string]int { return c.ByName }},
		{lang.Worker, "Worker", func(c state.Counts) map[string]int { return c.ByWorker }},
		{lang.Queue, "Queue", func(c state.Counts) map[string]int { return c.ByQueue }},
	} {
		if n, err = p.breakdown(ctx, q.Narrowed(), f.field, all); err != nil {
			return nil, nil, err
		}
		facet, counts := templates.Facet{ID: f.field.String(), Label: f.label}, f.counts(n.counts)
		for _, value := range frequent(counts, chosen[string](q.Query, f.field)) {
			term := lang.Equal(f.field, value)
			facet.Values = append(facet.Values, templates.FacetValue{
				Text: value, Count: n.total(counts[value]), On: q.Query.Has(term), Href: q.Toggle(term).URL(path),
			})
		}
		if len(facet.Values) > 0 {
			list = append(list, facet)
		}
	}
	return chips, list, nil
}

func (b *breakdown) total(n int) history.Count {
	return history.Count{N: n, Exact: b.whole || n == 0}
}

// chosen are the exact values that a query asks for in a field.
func chosen[S ~string](q lang.Query, f lang.Field) []S {
	var list []S
	for _, c := range q.Conditions() {
		if t, ok := c.Expr().(lang.Term); ok && t.Field == f {
			for _, v := range t.Values {
				if v.Match == lang.Exact {
					list = append(list, S(v.Text))
				}
			}
		}
	}
	return list
}

// frequent are the values with the greatest counts, and the chosen, by name.
func frequent(counts map[string]int, chosen []string) []string {
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	list = slices.Concat(list[:min(len(list), maxFacet)], chosen)
	slices.Sort(list)
	return slices.Compact(list)
}

// usual are the default columns.
func usual() []lang.Field {
	var list []lang.Field
	for _, id := range templates.PlainColumns() {
		if f, ok := lang.FieldNamed(id); ok {
			list = append(list, f)
		}
	}
	return list
}

func (p *tasksPage) columnMenu(q query.Tasks) templates.ColumnMenu {
	path := p.urls.Prefix + "/tasks"
	plain := usual()
	shown := q.Cols
	if len(shown) == 0 {
		shown = plain
	}
	address := func(cols []lang.Field) string {
		if slices.Equal(cols, plain) {
			cols = nil
		}
		return q.Show(cols...).URL(path)
	}
	var m templates.ColumnMenu
	for i, f := range shown {
		c := templates.ColumnChoice{ID: f.String(), Label: templates.ColumnLabel(f.String())}
		if c.Label == "" {
			continue
		}
		if i > 0 {
			c.Earlier = address(swapped(shown, i-1))
		}
		if i < len(shown)-1 {
			c.Later = address(swapped(shown, i))
		}
		if len(shown) > 1 {
			c.Off = address(slices.Delete(slices.Clone(shown), i, i+1))
		}
		m.Shown = append(m.Shown, c)
	}
	for _, f := range lang.Fields() {
		if label := templates.ColumnLabel(f.String()); label != "" && !slices.Contains(shown, f) {
			m.Others = append(m.Others, templates.ColumnChoice{
				ID: f.String(), Label: label, On: address(slices.Concat(shown, []lang.Field{f})),
			})
		}
	}
	if !slices.Equal(shown, plain) {
		m.Reset = address(plain)
	}
	return m
}

// swapped returns the columns with those at i and i+1 in each other's place.
func swapped(cols []lang.Field, i int) []lang.Field {
	cols = slices.Clone(cols)
	cols[i], cols[i+1] = cols[i+1], cols[i]
	return cols
}

// table is the shape of the list: its columns, and where their headers lead.
func (p *tasksPage) table(q query.Tasks) templates.Table {
	path := p.urls.Prefix + "/tasks"
	t := templates.Table{Sorts: map[string]templates.Sort{}}
	for _, f := range q.Cols {
		t.Columns = append(t.Columns, f.String())
	}
	for _, f := range lang.Fields() {
		s := templates.Sort{}
		switch {
		case f == lang.Updated && q.Sort == lang.Sort{}:
			s.Order = "descending"
		case f == lang.Updated:
			s.Href = q.By(lang.Sort{}).URL(path)
		case !f.Sortable():
			continue
		case q.Sort.Field != f:
			s.Href = q.By(lang.Sort{Field: f, Ascending: f.Alphabetical()}).URL(path)
		default:
			s.Order = "descending"
			if q.Sort.Ascending {
				s.Order = "ascending"
			}
			var other lang.Sort // after both ways, the usual order
			if q.Sort.Ascending == f.Alphabetical() {
				other = lang.Sort{Field: f, Ascending: !q.Sort.Ascending}
			}
			s.Href = q.By(other).URL(path)
		}
		t.Sorts[f.String()] = s
	}
	return t
}

// sorted says in words what a list is sorted by.
func sorted(s lang.Sort) string {
	if s.Field == 0 {
		return ""
	}
	column := "“" + templates.ColumnLabel(s.Field.String()) + "”"
	if s.Field.Alphabetical() {
		way := "by " + column
		if !s.Ascending {
			way += " from Z to A"
		}
		return way + "; tasks without it are omitted"
	}
	way := map[lang.Type][2]string{
		lang.Time: {"newest", "oldest"}, lang.Duration: {"longest", "shortest"}, lang.Number: {"greatest", "least"},
	}[s.Field.Type()]
	word := way[0]
	if s.Ascending {
		word = way[1]
	}
	return word + " " + column + " first; tasks without it are omitted"
}

// maxTabs bounds how many saved views are shown above a list; the page of views has all.
const maxTabs = 20

// tabs are the views above a list, with their numbers as far as these are known.
func (p *tasksPage) tabs(ctx context.Context, q query.Tasks) []templates.ViewTab {
	saved, err := p.backend.History().Views(ctx)
	if err != nil { // the list is from memory, and needs no history
		p.log.WarnContext(ctx, "read views", "error", err)
	}
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	path := p.urls.Prefix + "/tasks"
	here := q.First()
	here.Limit = 0
	list := []templates.ViewTab{{
		Name: "All", Href: path, Current: here.Canonical() == "",
	}}
	for _, v := range append(views.System(), saved[:min(len(saved), maxTabs)]...) {
		tab := templates.ViewTab{Name: v.Name, Href: p.viewHref(v)}
		if t, err := views.Tasks(v); err == nil {
			tab.Current = here.Canonical() == t.Canonical()
			count := func(ctx context.Context) (history.Count, error) { return p.backend.Count(ctx, t.Query) }
			if p.trace != nil {
				if n, err := count(ctx); err == nil {
					tab.Count = &n
				}
			} else if n, ok, err := p.counts.get(ctx, t.Query.String(), count); ok && err == nil {
				tab.Count = &n
			}
		}
		list = append(list, tab)
	}
	return list
}
