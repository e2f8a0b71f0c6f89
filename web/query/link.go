package query

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel/state"
)

// State returns the query in the terms of a cluster.
func (t Tasks) State() state.Query {
	limit := t.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	return state.Query{
		States:  t.States,
		Names:   t.Names,
		Workers: t.Workers,
		Text:    t.Text,
		Root:    t.Root,
		Limit:   limit,
		From:    t.From,
		Newer:   t.Newer,
	}
}

// Canonical returns the one spelling of the query: sorted, URL-encoded, without defaults and
// without its place in the list. Equal queries have equal canonical forms, so it names live topics
// and cache keys. The query of all tasks is empty.
func (t Tasks) Canonical() string { return t.values().Encode() }

// URL returns path with the query, its place in the list included.
func (t Tasks) URL(path string) string {
	v := t.values()
	if t.From != nil {
		v.Set(paramCursor, Encode(*t.From, t.Newer))
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

func (t Tasks) values() url.Values {
	v := url.Values{}
	for _, s := range t.States {
		v.Add(paramState, string(s))
	}
	for _, s := range t.Names {
		v.Add(paramName, s)
	}
	for _, s := range t.Workers {
		v.Add(paramWorker, s)
	}
	if t.Text != "" {
		v.Set(paramText, t.Text)
	}
	if t.Root != "" {
		v.Set(paramRoot, t.Root)
	}
	if t.Limit != 0 && t.Limit != DefaultLimit {
		v.Set(paramLimit, strconv.Itoa(t.Limit))
	}
	return v
}

// Filtered reports whether the query leaves any task out.
func (t Tasks) Filtered() bool {
	return len(t.States) > 0 || len(t.Names) > 0 || len(t.Workers) > 0 || t.Text != "" || t.Root != ""
}

// First returns the query at the newest page.
func (t Tasks) First() Tasks {
	t.From, t.Newer = nil, false
	return t
}

// After returns the query at the page that continues after pos, towards newer or older rows. With
// a nil pos, as a state.Page has at its ends, it returns the newest page.
func (t Tasks) After(pos *state.Position, newer bool) Tasks {
	t.From, t.Newer = pos, newer && pos != nil
	return t
}

// Toggle returns the query, at its newest page, with s among its states if it was not, without it
// if it was.
func (t Tasks) Toggle(s state.State) Tasks {
	t = t.First()
	if i, found := slices.BinarySearch(t.States, s); found {
		t.States = slices.Delete(slices.Clone(t.States), i, i+1)
	} else {
		t.States = slices.Insert(slices.Clone(t.States), i, s)
	}
	return t
}
