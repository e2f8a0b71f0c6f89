package api

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

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

func each[S, T any](items []S, convert func(S) T) []T {
	converted := make([]T, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}

// nullable lets those fields of T be null that may be unknown and describe themselves, who cannot know of the
// pointer: an Int, a choice, an object with a schema of its own.
func nullable[T any](s *huma.Schema) *huma.Schema {
	null := &huma.Schema{Type: "null"}
	for f := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		switch {
		case f.Type.Kind() != reflect.Pointer:
		case f.Type == reflect.TypeFor[*Int]():
			p.AnyOf = append(p.AnyOf, null)
		case p.Ref != "":
			p.AnyOf, p.Ref = []*huma.Schema{{Ref: p.Ref}, null}, ""
		case len(p.Enum) > 0:
			p.Enum = append(p.Enum, nil)
		}
	}
	return s
}
