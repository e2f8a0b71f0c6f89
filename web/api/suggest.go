package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
)

// Suggestions are completions of a query, best first.
type Suggestions struct {
	Items []Suggestion `json:"items" nullable:"false"`
}

// Suggestion is one completion.
type Suggestion struct {
	Text  string `json:"text" doc:"Text to insert." example:"state:"`
	Help  string `json:"help" doc:"Short explanation."`
	Query string `json:"query" doc:"Query with the text inserted."`
	At    int    `json:"at" doc:"Cursor position after inserting, in bytes."`
}

// maxValues bounds how many values of a field are read from the history.
const maxValues = 50

type suggestInput struct {
	Q  string `query:"q" maxLength:"2048" doc:"Query to complete."`
	At int    `query:"at" minimum:"-1" default:"-1" doc:"Cursor position in bytes; -1 for the end."`
}

func (a *api) registerSuggest(h huma.API) {
	huma.Register(h, operation(h, auth.View, "suggest", "/suggest", "Complete a query"), a.suggest)
}

func (a *api) suggest(ctx context.Context, r *suggestInput) (*response[Suggestions], error) {
	text, at := r.Q, r.At
	if at < 0 {
		at = len(text)
	}
	if at > len(text) {
		return nil, badParameter(&query.Error{Param: "at", Message: "must be a position in q, in bytes"})
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list := complete(text, at, func(f lang.Field, part string) []string { return a.known(ctx, f, part) })
	return &response[Suggestions]{Body: list}, nil
}

// Complete returns completions of a query at a position, by default at its end.
func Complete(text, position string, values func(f lang.Field, part string) []string) Suggestions {
	text = text[:min(len(text), query.MaxText)]
	at, err := strconv.Atoi(position)
	if err != nil || at < 0 || at > len(text) {
		at = len(text)
	}
	return complete(text, at, values)
}

func complete(text string, at int, values func(f lang.Field, part string) []string) Suggestions {
	list := Suggestions{Items: []Suggestion{}}
	for _, s := range lang.Complete(text, at, values) {
		list.Items = append(list.Items, Suggestion{
			Text: s.Text, Help: s.Help, Query: text[:s.Start] + s.Text + text[s.End:], At: s.Start + len(s.Text),
		})
	}
	return list
}

// known returns the values of a field that contain part, from memory and from the history if it can be read.
func (a *api) known(ctx context.Context, f lang.Field, part string) []string {
	if f == lang.Cluster {
		return auth.FromContext(ctx).Clusters
	}
	var counts state.Counts
	var workers []state.Worker
	a.backend.View(func(c state.View) { counts, workers = c.Counts(), c.Workers() })
	var list []string
	add := func(s string) {
		if strings.Contains(strings.ToLower(s), strings.ToLower(part)) {
			list = append(list, s)
		}
	}
	switch f {
	case lang.Name:
		for name := range counts.ByName {
			add(name)
		}
	case lang.Queue:
		for queue := range counts.ByQueue {
			add(queue)
		}
	case lang.State:
		for s := range counts.ByState {
			add(string(s))
		}
	case lang.Worker:
		for _, w := range workers {
			add(w.Name)
		}
	default:
	}
	kept, err := a.backend.History().Values(ctx, f, part, maxValues)
	if err != nil {
		a.logger.DebugContext(ctx, "values of a field cannot be read", "field", f.String(), "error", err)
	}
	list = append(list, kept...)
	slices.Sort(list)
	return slices.Compact(list)
}
