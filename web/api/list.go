package api

import (
	"encoding/base64"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/web/query"
	"github.com/umbelhq/umbel/web/search"
)

// List is a page of a list.
type List[T any] struct {
	Items []T     `json:"items" nullable:"false"`
	Next  *string `json:"next" doc:"Cursor of the next page; null on the last page."`
	Prev  *string `json:"prev" doc:"Cursor of the previous page; null on the first page."`
	Total *int    `json:"total" doc:"Number of items on all pages; null if counting would take too long."`
}

// onePage returns a list with all items on one page.
func onePage[S, T any](items []S, convert func(S) T) List[T] {
	return List[T]{Items: mapSlice(items, convert), Total: new(len(items))}
}

// NamePage is a part of a list in the order of names.
type NamePage struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"Maximum number of items to return."`
	Cursor string `query:"cursor" maxLength:"1024" doc:"Cursor from next of an earlier response."`
}

// pageByName returns the items of a page, which are sorted by name, and the cursor of the next one, nil if it is the last.
func pageByName[T any](p NamePage, items []T, name func(T) string) (page []T, next *string, err error) {
	begin := 0
	if p.Cursor != "" {
		after, err := base64.RawURLEncoding.DecodeString(p.Cursor)
		if err != nil {
			return nil, nil, badParameter(&query.Error{Param: "cursor", Message: "must be next of an earlier response"})
		}
		begin = sort.Search(len(items), func(i int) bool { return name(items[i]) > string(after) })
	}
	end := min(begin+p.Limit, len(items))
	if end < len(items) {
		next = new(base64.RawURLEncoding.EncodeToString([]byte(name(items[end-1]))))
	}
	return items[begin:end], next, nil
}

// pageInOrder returns the items of a page of a list that is sorted otherwise, and the cursor of the next one, as pageByName does.
// The order may change between two pages.
func pageInOrder[T any](p NamePage, items []T, name func(T) string) (page []T, next *string, err error) {
	if p.Cursor == "" {
		return pageByName(p, items, name)
	}
	after, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	begin := slices.IndexFunc(items, func(item T) bool { return name(item) == string(after) }) + 1
	if err != nil || begin == 0 {
		return nil, nil, badParameter(&query.Error{Param: "cursor", Message: "must be next of an earlier response, of an item that is still listed"})
	}
	p.Cursor = ""
	return pageByName(p, items[begin:], name)
}

// checkSort refuses an order that is not by one of some keys.
func checkSort(order string, keys []string) error {
	if order == "" || slices.Contains(keys, strings.TrimPrefix(order, "-")) {
		return nil
	}
	return badParameter(&query.Error{
		Param: "sort", Message: "must be one of " + strings.Join(keys, ", ") + ", with a leading - for descending order",
	})
}

// Tasks is a page of the list of tasks.
type Tasks struct {
	Items        []Task  `json:"items" nullable:"false"`
	Next         *string `json:"next" doc:"Cursor of the next page; null on the last page."`
	Prev         *string `json:"prev" doc:"Cursor of the previous page; null on the first page."`
	Total        *int    `json:"total" doc:"Number of tasks on all pages; null if counting would take too long."`
	TotalAtLeast *int    `json:"total_at_least" doc:"Lower bound where total is null."`
	Searched     *int    `json:"searched" doc:"Number of tasks searched for this page, if the search stopped early: the page may then be short and still have a next. Null if the search was complete."`
}

func fromPage(p search.Page) Tasks {
	l := Tasks{Items: mapSlice(p.Tasks, FromTask)}
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

func mapSlice[S, T any](items []S, convert func(S) T) []T {
	converted := make([]T, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}

// completeSchemas adds to the schemas where null is possible and huma does not say so: in pointers to enums and to types
// with schemas of their own, and in what a request may leave out, where null counts as absent.
func completeSchemas(r huma.Registry) {
	null := &huma.Schema{Type: "null"}
	for name, s := range r.Map() {
		for _, f := range reflect.VisibleFields(r.TypeFromRef("#/components/schemas/" + name)) {
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := s.Properties[field]
			if p == nil {
				continue
			}
			optional := s.AdditionalProperties == false && !slices.Contains(s.Required, field)
			switch {
			case optional && p.Ref == "" && p.Type != "":
				p.Nullable = true
			case f.Type.Kind() != reflect.Pointer:
			case f.Type == reflect.TypeFor[*Int]():
				p.AnyOf = append(p.AnyOf, null)
			case p.Ref != "":
				p.AnyOf, p.Ref = []*huma.Schema{{Ref: p.Ref}, null}, ""
			case len(p.Enum) > 0:
				p.Enum = append(p.Enum, nil)
			}
		}
	}
}
