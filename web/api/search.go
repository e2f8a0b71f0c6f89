package api

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/views"
)

// Found are pages of things with a name, by kind, best first.
type Found struct {
	Items []FoundItem `json:"items" nullable:"false" maxItems:"25"`
}

// FoundItem is the page of one thing.
type FoundItem struct {
	Kind string `json:"kind" enum:"worker,queue,name,view,task" doc:"What it is; name is the name of tasks."`
	Text string `json:"text" doc:"Its name or ID." example:"celery@web-1"`
	Path string `json:"path" doc:"Path of its page, below Umbel's own." example:"/workers/celery@web-1"`
}

// Bounds of a search.
const (
	foundOfKind = 5 // of each kind
	leastID     = 3 // characters of the beginning of an ID
)

type searchInput struct {
	Q string `query:"q" required:"true" minLength:"1" maxLength:"200" doc:"Words in the name, or the beginning of a task's ID."`
}

func (a *api) registerSearch(h huma.API) {
	huma.Register(h, operation(h, auth.View, "search", "/search", "Find pages by name"), a.search)
}

// search finds what has all words in its name. What cannot be read is left out: the history may be unavailable while memory is not.
func (a *api) search(ctx context.Context, r *searchInput) (*response[Found], error) {
	words := strings.Fields(strings.ToLower(r.Q))
	if len(words) == 0 {
		return &response[Found]{Body: Found{Items: []FoundItem{}}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list := []FoundItem{}
	add := func(kind string, names []string, path func(name string) string) {
		for _, name := range nearest(names, words) {
			list = append(list, FoundItem{kind, name, path(name)})
		}
	}
	tasksWhere := func(field lang.Field) func(string) string {
		return func(v string) string {
			return "/tasks?" + url.Values{"q": {lang.New(lang.Equal(field, v)).String()}}.Encode()
		}
	}
	add("worker", a.known(ctx, lang.Worker, words[0]), func(name string) string { return "/workers/" + url.PathEscape(name) })
	queue := tasksWhere(lang.Queue)
	if a.commands != nil {
		queue = func(name string) string { return "/queues/" + url.PathEscape(name) }
	}
	add("queue", a.known(ctx, lang.Queue, words[0]), queue)
	add("name", a.known(ctx, lang.Name, words[0]), tasksWhere(lang.Name))
	list = append(list, a.foundViews(ctx, words)...)
	if len(words) == 1 && len(words[0]) >= leastID {
		list = append(list, a.foundTasks(ctx, strings.TrimSpace(r.Q))...)
	}
	return &response[Found]{Body: Found{Items: list}}, nil
}

// nearest returns the names that have all words, those first that begin with the first one, then short ones.
func nearest(names, words []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		lower := strings.ToLower(name)
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(lower, word) })
	})
	at := func(name string) int { return strings.Index(strings.ToLower(name), words[0]) }
	slices.SortStableFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(min(at(x), 1), min(at(y), 1)), cmp.Compare(len(x), len(y)))
	})
	return names[:min(len(names), foundOfKind)]
}

func (a *api) foundViews(ctx context.Context, words []string) []FoundItem {
	saved, err := a.backend.History().Views(ctx)
	if err != nil {
		a.logger.DebugContext(ctx, "views cannot be read", "error", err)
	}
	byName := map[string]history.View{}
	for _, v := range saved {
		byName[v.Name] = v
	}
	var list []FoundItem
	names := make([]string, 0, len(saved))
	for _, v := range saved {
		names = append(names, v.Name)
	}
	for _, name := range nearest(names, words) {
		if t, err := views.Tasks(byName[name]); err == nil {
			list = append(list, FoundItem{"view", name, t.URL("/tasks")})
		}
	}
	return list
}

// foundTasks returns the newest tasks whose ID begins with id.
func (a *api) foundTasks(ctx context.Context, id string) []FoundItem {
	q := lang.New(lang.Term{Field: lang.ID, Values: []lang.Value{{Match: lang.Pattern, Text: id + "*"}}})
	page, err := a.backend.Tasks(ctx, history.TaskRequest{Query: q, Limit: foundOfKind, Now: a.now()})
	if err != nil {
		a.logger.DebugContext(ctx, "tasks cannot be searched", "error", err)
		return nil
	}
	var list []FoundItem
	for _, t := range page.Tasks {
		list = append(list, FoundItem{"task", taskText(t), "/tasks/" + url.PathEscape(t.ID)})
	}
	return list
}

func taskText(t state.Task) string {
	if t.Name == nil {
		return t.ID
	}
	return *t.Name + " " + t.ID
}
