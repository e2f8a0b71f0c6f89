package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
)

// searchedAtOnce bounds how many clusters a search of all reads beside each other, and searchTimeout how long it waits for one.
const (
	searchedAtOnce = 8
	searchTimeout  = 3 * time.Second
)

// foundTask is a task of one of several clusters.
type foundTask struct {
	state.Task

	cluster string
	urls    templates.URLs // as the visitor may use that cluster
}

// find returns the newest tasks of all clusters that the visitor may see and the query does not leave out, newest change first, and a
// sentence for each that cannot be searched. Times of change are compared, since logical clocks of clusters have nothing in common.
func (c *Clusters) find(ctx context.Context, r *http.Request, q query.Tasks) (found []foundTask, problems []string, err error) {
	of := c.visible(ctx)
	for _, name := range q.Query.Clusters() {
		if !slices.ContainsFunc(of, func(one Cluster) bool { return strings.EqualFold(one.Name, name) }) {
			message := auth.NoCluster(name).Message
			at := (&lang.OtherClusterError{Named: name}).In(q.Text)
			at.Message = message
			return nil, nil, &query.Error{Param: "q", Message: "is invalid: " + message, Query: at}
		}
	}
	if q.Sort != (lang.Sort{}) || q.From != nil {
		return nil, nil, &query.Error{Param: "sort", Message: "and cursor are for one cluster: a search of all returns the newest tasks"}
	}
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	lists, failed := make([][]foundTask, len(of)), make([]string, len(of))
	var here, elsewhere errgroup.Group // other Umbels, which may be slow, take no place from clusters that are watched here
	here.SetLimit(searchedAtOnce)
	for i, one := range of {
		if one.Remote != nil {
			elsewhere.Go(func() error {
				lists[i], failed[i] = c.findAt(ctx, one, q)
				return nil
			})
			continue
		}
		here.Go(func() error {
			var err error
			if lists[i], err = c.findIn(ctx, r, one, q); err != nil {
				c.o.Logger.WarnContext(ctx, "cluster cannot be searched", "cluster", one.Name, "error", err)
				failed[i] = fmt.Sprintf("The tasks of %s cannot be read now.", one.Name)
			}
			return nil
		})
	}
	_, _ = here.Wait(), elsewhere.Wait()
	found = slices.Concat(lists...)
	slices.SortStableFunc(found, func(a, b foundTask) int { return cmp.Compare(b.UpdatedAt, a.UpdatedAt) })
	problems = slices.DeleteFunc(failed, func(s string) bool { return s == "" })
	return found[:min(len(found), cmp.Or(q.Limit, query.DefaultLimit))], problems, nil
}

// findIn returns tasks of a cluster, as the visitor may see them there.
func (c *Clusters) findIn(ctx context.Context, r *http.Request, one Cluster, q query.Tasks) ([]foundTask, error) {
	p, err := pagesOf(r, one)
	if p == nil {
		return nil, err
	}
	q.Query = q.Query.In(one.Name)
	page, err := p.backend.Tasks(ctx, q.Request(c.pages.now()))
	if _, ok := errors.AsType[lang.UnresolvedError](err); ok { // a task of another cluster
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	found := make([]foundTask, 0, len(page.Tasks))
	for _, t := range page.Tasks {
		found = append(found, foundTask{t, one.Name, p.urls})
	}
	return found, nil
}

// pagesOf returns the pages of a cluster as the visitor may see them, nil if there are none.
func pagesOf(r *http.Request, one Cluster) (*pages, error) {
	h, why := one.Handler()
	if h == nil {
		return nil, errors.New(why)
	}
	grant, err := h.auth.Authenticate(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is logged
	}
	return h.pages[grant.Audience], nil
}

// matches links to the tasks that a query matches in each cluster, and counts them where they are watched here.
func (c *Clusters) matches(ctx context.Context, r *http.Request, q query.Tasks) []templates.ClusterMatches {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	of := c.visible(ctx)
	all := make([]templates.ClusterMatches, len(of))
	var g errgroup.Group
	g.SetLimit(searchedAtOnce)
	for i, one := range of {
		asked := q.Request(c.pages.now()).Query.In(one.Name)
		if asked.Has(lang.Equal(lang.ID, "")) { // the query names other clusters alone
			continue
		}
		to := query.Tasks{Query: asked}.URL("/tasks")
		if one.Remote != nil {
			all[i] = templates.ClusterMatches{Cluster: one.Name, Href: strings.TrimRight(one.Remote.URL, "/") + to}
			continue
		}
		g.Go(func() error {
			p, _ := pagesOf(r, one)
			if p == nil {
				return nil // the search has said why
			}
			all[i] = templates.ClusterMatches{Cluster: one.Name, Href: p.urls.Prefix + to}
			if n, err := p.backend.Count(ctx, asked); err == nil { // without it the page tells less
				all[i].Count = &n
			}
			return nil
		})
	}
	_ = g.Wait()
	return slices.DeleteFunc(all, func(m templates.ClusterMatches) bool { return m.Cluster == "" })
}

// tasks shows the newest tasks of all clusters.
func (c *Clusters) tasks(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	q, err := query.Parse(values)
	v := templates.ClusterTasks{Text: strings.TrimSpace(values.Get("q"))}
	pg := page{url: q.URL("/tasks"), title: "Tasks of all clusters", static: true}
	var found []foundTask
	if err == nil {
		if found, v.Problems, err = c.find(r.Context(), r, q); err == nil {
			v.Matches = c.matches(r.Context(), r, q)
		}
	}
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		pg.status, v.Error = http.StatusBadRequest, (&tasksPage{common: c.pages}).queryError(q, values, wrong)
		v.Error.Shown = ""
	}
	for i := range found {
		v.Tasks = append(v.Tasks, templates.ClusterTask{Task: found[i].Task, Cluster: found[i].cluster, URLs: found[i].urls})
	}
	v.Limit = cmp.Or(q.Limit, query.DefaultLimit)
	pg.view = v
	c.pages.show(w, r, pg)
}

// listTasks answers the API with the newest tasks of all clusters.
func (c *Clusters) listTasks(w http.ResponseWriter, r *http.Request) {
	q, err := query.Parse(r.URL.Query())
	var found []foundTask
	problems := []string{}
	if err == nil {
		found, problems, err = c.find(r.Context(), r, q)
	}
	if err != nil {
		api.Refuse(w, http.StatusBadRequest, "Parameter "+err.Error()+".")
		return
	}
	items := make([]api.ClusterTask, 0, len(found))
	for i := range found {
		items = append(items, api.ClusterTask{Cluster: found[i].cluster, Task: api.FromTask(found[i].Task)})
	}
	writeJSON(w, map[string]any{"items": items, "problems": append([]string{}, problems...)})
}

// suggest completes a query to all clusters.
func (c *Clusters) suggest(w http.ResponseWriter, r *http.Request) {
	text, clusters := r.URL.Query().Get("q"), auth.FromContext(r.Context()).Clusters
	list := api.Complete(text, r.URL.Query().Get("at"), func(f lang.Field, _ string) []string {
		if f == lang.Cluster {
			return clusters
		}
		return nil
	})
	writeJSON(w, list)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", jsonType)
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has gone
}
