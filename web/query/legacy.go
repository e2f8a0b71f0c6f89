package query

import (
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// State returns the query in the terms of a cluster, as far as these go: exact states, names and workers, one
// root, and one free text.
func (t Tasks) State() state.Query {
	s, text := state.Query{}, ""
	for _, c := range t.Query.Conditions() {
		if term, ok := c.Expr().(query.Term); ok && term.Field == query.Any {
			text = term.Values[0].Text
			continue
		}
		if one, ok := c.Simple(); ok {
			s.States = append(s.States, one.States...)
			s.Names = append(s.Names, one.Names...)
			s.Workers = append(s.Workers, one.Workers...)
			if one.Root != "" {
				s.Root = one.Root
			}
		}
	}
	s.Text = text
	s.From, s.Newer = t.From, t.Newer
	if s.Limit = t.Limit; s.Limit == 0 {
		s.Limit = DefaultLimit
	}
	return s
}
