package tasktype

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Bounds of what is read for a group of failures.
const (
	maxOthers = 500 // newest tasks of the name that succeeded
	maxShares = 10  // workers, and values, that are told
	maxIDs    = 40  // tasks that are named one by one in a query
)

// Split is how the failed tasks of a group are spread over workers and values, beside tasks of the same name that succeeded.
type Split struct {
	Tasks   int     // that were read, the newest
	Whole   bool    // all of the group
	Others  int     // the newest tasks of the name that succeeded
	Workers []Share // most tasks first
	Rest    int     // workers beyond these
	Values  []Share // of queue, retries and arguments, the greatest difference first
}

// Share is a value that some of the failed tasks have.
type Share struct {
	Trait
	Apart bool   // more frequent than among the others, by more than chance explains
	Query string // finds exactly the failed tasks that were counted; empty if no query does
}

// ReadSplit reads the newest failed tasks that failed finds, and the newest of a name that succeeded.
func ReadSplit(ctx context.Context, tasks rollup.Tasks, failed query.Query, name string, now time.Time) (Split, error) {
	selected, whole, err := newestTasks(ctx, tasks, failed, MaxFailures)
	if err != nil {
		return Split{}, err
	}
	var others []state.Task
	if name != "" {
		q := query.New(query.And{query.Equal(query.Name, name), query.Equal(query.State, string(state.Success))})
		if others, _, err = newestTasks(ctx, tasks, q, maxOthers); err != nil {
			return Split{}, err
		}
	}
	if !whole {
		selected, failed = bounded(selected, failed)
	}
	b := newSplitter(failed, selected, now)
	s := Split{Tasks: len(selected), Whole: whole, Others: len(others)}
	all, among := count(b.traits), count(traitsOf(others))
	known := compare(all, among)
	apart := map[pair]bool{}
	for _, t := range known.Traits {
		apart[pair{t.Field, t.Value}] = true
		if t.Field != "worker" {
			s.Values = append(s.Values, b.share(t, true))
		}
	}
	for p, n := range all.have {
		t := Trait{p.field, p.value, n, all.known[p.field], among.have[p], among.known[p.field]}
		switch {
		case p.field == "worker":
			s.Workers = append(s.Workers, Share{Trait: t, Apart: apart[p]})
		case t.OthersOf == 0 && t.SelectedShare() >= .5 && n >= 3: // there is nothing to compare with
			s.Values = append(s.Values, b.share(t, false))
		}
	}
	slices.SortFunc(s.Workers, order)
	slices.SortStableFunc(s.Values, func(a, b Share) int {
		if a.Apart || b.Apart {
			return 0 // as compared
		}
		return order(a, b)
	})
	s.Values = s.Values[:min(len(s.Values), maxShares)]
	s.Rest = max(len(s.Workers)-maxShares, 0)
	s.Workers = s.Workers[:len(s.Workers)-s.Rest]
	for i := range s.Workers {
		s.Workers[i] = b.share(s.Workers[i].Trait, s.Workers[i].Apart)
	}
	return s, nil
}

func order(a, b Share) int {
	return cmp.Or(cmp.Compare(b.Selected, a.Selected), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Value, b.Value))
}

// bounded returns the tasks that a query with bounds finds, and this query: of tasks with the lowest clock, some may not have
// been read.
func bounded(list []state.Task, q query.Query) ([]state.Task, query.Query) {
	low, high := list[0].Stamp.Clock, list[0].Stamp.Clock
	for i := range list {
		low, high = min(low, list[i].Stamp.Clock), max(high, list[i].Stamp.Clock)
	}
	if low < high {
		list = slices.DeleteFunc(list, func(t state.Task) bool { return t.Stamp.Clock == low })
		low++
	}
	return list, q.And(query.New(query.Between(query.Clock, low, high+1)))
}

// splitter finds queries for some of the tasks that a query finds.
type splitter struct {
	all    query.Query
	tasks  []state.Task // all that it finds
	traits []map[string]string
	found  []bool // whether it matches each
	now    time.Time
}

func newSplitter(all query.Query, tasks []state.Task, now time.Time) splitter {
	b := splitter{all, tasks, traitsOf(tasks), make([]bool, len(tasks)), now}
	for i := range tasks {
		b.found[i] = all.Match(&tasks[i], now)
	}
	return b
}

func (b splitter) share(t Trait, apart bool) Share {
	s := Share{Trait: t, Apart: apart}
	has := make([]bool, len(b.tasks))
	var ids []string
	for i := range b.tasks {
		if has[i] = b.traits[i][t.Field] == t.Value; has[i] {
			ids = append(ids, b.tasks[i].ID)
		}
	}
	candidates := conditions(t)
	if len(ids) <= maxIDs {
		candidates = append(candidates, query.Equal(query.ID, ids...))
	}
	for _, c := range candidates {
		condition := query.New(c)
		q := b.all.And(condition)
		if _, err := query.Parse(q.String()); err == nil && b.finds(condition, has) {
			s.Query = q.String()
			break
		}
	}
	return s
}

// finds reports whether a condition, of those that all finds, finds exactly some of the tasks.
func (b splitter) finds(condition query.Query, these []bool) bool {
	for i := range b.tasks {
		if (b.found[i] && condition.Match(&b.tasks[i], b.now)) != these[i] {
			return false
		}
	}
	return true
}

// conditions are those that may find the tasks with a trait, the plainest first.
func conditions(t Trait) []query.Expr {
	if f, ok := query.FieldNamed(t.Field); ok && f.Type() == query.Word {
		return []query.Expr{query.Equal(f, t.Value)}
	}
	if t.Field == "retries" {
		var n int64
		if json.Unmarshal([]byte(t.Value), &n) != nil {
			return nil
		}
		return []query.Expr{query.Between(query.Retries, n, n+1)}
	}
	value, ok := pythonRepr(t.Value)
	if !ok {
		return nil
	}
	if key, found := strings.CutPrefix(t.Field, "kwargs."); found {
		return []query.Expr{query.Equal(query.Kwargs, "'"+key+"': "+value)}
	}
	return []query.Expr{query.Equal(query.Args, value)}
}

// pythonRepr returns a JSON value as Python writes it, false for what can be written in more than one way.
func pythonRepr(value string) (string, bool) {
	switch value {
	case "true":
		return "True", true
	case "false":
		return "False", true
	case "null":
		return "None", true
	}
	if !strings.HasPrefix(value, `"`) {
		return value, value != "" && value[0] != '[' && value[0] != '{'
	}
	var text string
	if json.Unmarshal([]byte(value), &text) != nil || strings.ContainsAny(text, `'"\`) || !utf8.ValidString(text) {
		return "", false
	}
	return "'" + text + "'", true
}
