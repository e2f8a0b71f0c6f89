package api

import (
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/query"
	"github.com/umbelhq/umbel/web/search"
)

// List is a page of a list.
type List[T any] struct {
	Items []T     `json:"items" nullable:"false"`
	Next  *string `json:"next" doc:"Cursor of the following page, null at the end."`
	Prev  *string `json:"prev" doc:"Cursor of the page before, null at the start."`
	Total *int    `json:"total" doc:"Items on all pages, null where counting them would cost too much."`
}

// whole returns a list that has all its items on one page.
func whole[S, T any](items []S, convert func(S) T) List[T] {
	return List[T]{Items: each(items, convert), Total: new(len(items))}
}

// Tasks is a page of the list of tasks.
type Tasks struct {
	Items        []Task  `json:"items" nullable:"false"`
	Next         *string `json:"next" doc:"Cursor of the following page, null at the end."`
	Prev         *string `json:"prev" doc:"Cursor of the page before, null at the start."`
	Total        *int    `json:"total" doc:"Tasks on all pages, null where counting all would cost too much."`
	TotalAtLeast *int    `json:"total_at_least" doc:"How many there are at the least where total is null."`
	Searched     *int    `json:"searched" doc:"How many tasks were looked at for this page, null if all that could match: it may be short and have a next."`
}

func fromPage(p search.Page) Tasks {
	l := Tasks{Items: each(p.Tasks, FromTask)}
	if p.Total.Exact {
		l.Total = &p.Total.N
	} else {
		l.TotalAtLeast = &p.Total.N
	}
	if p.Searched > 0 {
		l.Searched = &p.Searched
	}
	if p.Next != nil {
		l.Next = new(query.Encode(*p.Next, false))
	}
	if p.Prev != nil {
		l.Prev = new(query.Encode(*p.Prev, true))
	}
	return l
}

// moving reports whether a query matches other tasks as time goes by.
func moving(e lang.Expr) bool {
	switch e := e.(type) {
	case lang.And:
		return slices.ContainsFunc(e, moving)
	case lang.Or:
		return slices.ContainsFunc(e, moving)
	case lang.Not:
		return moving(e.X)
	case lang.Term:
		return slices.ContainsFunc(e.Values, func(v lang.Value) bool { return v.Min.Relative || v.Max.Relative })
	default:
		return false
	}
}

func each[S, T any](items []S, convert func(S) T) []T {
	converted := make([]T, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}

// nullable lets the Int fields of T that are pointers be null: Int describes itself and cannot
// know of the pointer.
func nullable[T any](s *huma.Schema) *huma.Schema {
	for f := range reflect.TypeFor[T]().Fields() {
		if f.Type == reflect.TypeFor[*Int]() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := s.Properties[name]
			p.AnyOf = append(p.AnyOf, &huma.Schema{Type: "null"})
		}
	}
	return s
}
