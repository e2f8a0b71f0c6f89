package api

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/query"
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

func fromPage(p state.Page) List[Task] {
	l := List[Task]{Items: each(p.Tasks, FromTask), Total: p.Total}
	if p.Older != nil {
		l.Next = new(query.Encode(*p.Older, false))
	}
	if p.Newer != nil {
		l.Prev = new(query.Encode(*p.Newer, true))
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
