package flower

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	maxTexts   = 4   // texts of a search that are looked for in all fields by indexes
	maxTextIDs = 200 // ids that contain one
	idTimeout  = 500 * time.Millisecond
)

// narrowing makes conditions that hold for all tasks that a search finds, so that an index can leave out most others.
type narrowing struct {
	// ids returns the ids that contain a text, false if they are too many to name; nil names none.
	ids    func(text string) ([]string, bool)
	states []string // that tasks are in
	texts  int      // that were looked for in all fields
}

// expression returns the condition of a search, nil if none is worth asking for. Case is folded alike for ASCII only.
func (n *narrowing) expression(e expression) query.Expr {
	switch e := e.(type) {
	case and:
		var list query.And
		for _, part := range e {
			if q := n.expression(part); q != nil {
				list = append(list, q)
			}
		}
		if len(list) > 0 {
			return list
		}
	case or:
		var list query.Or
		for _, part := range e {
			q := n.expression(part)
			if q == nil {
				return nil
			}
			list = append(list, q)
		}
		return list
	case term:
		return n.term(e)
	}
	return nil
}

func (n *narrowing) term(t term) query.Expr {
	if strings.TrimSpace(t.value) != t.value || strings.ContainsFunc(t.value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil
	}
	fields := map[string]query.Field{
		"name": query.Name, "worker": query.Worker, "args": query.Args, "kwargs": query.Kwargs, "result": query.Result,
	}
	field, ok := fields[t.field]
	switch {
	case t.field == "state":
		return query.Equal(query.State, strings.ToUpper(t.value))
	case t.field == "":
		return n.text(t.value)
	case !ok || t.exact() || withoutSS(t.value) == "":
		return nil
	}
	return contains(field, withoutSS(t.value))
}

// withoutSS returns the longest part of a text that has no ss, which is also what ß is folded to. Empty is none. Other letters
// that are folded to ASCII, such as the long s, are found only where they are written so.
func withoutSS(text string) string {
	text = strings.ToLower(text)
	if !strings.Contains(text, "ss") {
		return text
	}
	parts := strings.Split(text, "ss")
	for i, part := range parts {
		parts[i] = strings.Trim(part, "s")
	}
	return slices.MaxFunc(parts, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// text is term for a text that is looked for in all fields.
func (n *narrowing) text(text string) query.Expr {
	n.texts++
	part := withoutSS(text)
	if n.ids == nil || n.texts > maxTexts || part == "" {
		return nil
	}
	ids, ok := n.ids(text)
	if !ok {
		return nil
	}
	list := query.Or{contains(query.Any, part), contains(query.Worker, part)}
	if len(ids) > 0 {
		list = append(list, query.Equal(query.ID, ids...))
	}
	for _, s := range n.states {
		if strings.Contains(fold(s), fold(text)) {
			list = append(list, query.Equal(query.State, s))
		}
	}
	return list
}

// idsWith returns a function that finds ids which contain a text, and do not begin with it: no index does, so they are those
// of the newest tasks, as many as are read in idTimeout.
func (a *API) idsWith(ctx context.Context) func(text string) ([]string, bool) {
	return func(text string) ([]string, bool) {
		limited, cancel := context.WithTimeout(ctx, idTimeout)
		defer cancel()
		var ids []string
		err := a.each(limited, &filter{}, query.New(contains(query.ID, text)), query.Sort{}, func(t *state.Task) bool {
			ids = append(ids, t.ID)
			return len(ids) <= maxTextIDs
		})
		return slices.Clip(ids), (err == nil || limited.Err() != nil) && len(ids) <= maxTextIDs
	}
}
