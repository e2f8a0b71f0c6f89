package flower

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// SearchTree parses a search. The tree has nil for everything, [field, value] for a term, and an object with the key and, or
// or, for a list.
func SearchTree(text string) (any, error) {
	e, err := parseSearch(text)
	return tree(e), err
}

func tree(e expression) any {
	list := func(of []expression) (trees []any) {
		for _, x := range of {
			trees = append(trees, tree(x))
		}
		return trees
	}
	switch e := e.(type) {
	case and:
		return map[string]any{"and": list(e)}
	case or:
		return map[string]any{"or": list(e)}
	case term:
		return []any{e.field, e.value}
	}
	return nil
}

// Find reports whether a search finds a task, and whether the query that it becomes selects it too.
func Find(text string, t *state.Task) (found, selected bool) {
	e, err := parseSearch(text)
	if err != nil {
		return false, false
	}
	f := filter{search: e, payload: true}
	n := narrowing{states: []string{"SUCCESS", "FAILURE", "PROGRESS"}, ids: func(text string) (ids []string, ok bool) {
		if strings.Contains(strings.ToLower(t.ID), strings.ToLower(text)) {
			ids = []string{t.ID}
		}
		return ids, true
	}}
	list := n.expression(e)
	return f.matches(t), list == nil || query.New(list).Match(t, time.Time{})
}

// Arguments reads the arguments of a query, with what is wrong with them.
func Arguments(query string) (map[string]string, error) {
	a := arguments{}
	return a, a.parse(query)
}

// Encode returns JSON as Python writes it.
func Encode(raw []byte) string { return string(encode(json.RawMessage(raw))) }
