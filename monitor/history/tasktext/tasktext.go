// Package tasktext says which text of a task is searched, for the indexes of all histories.
package tasktext

import (
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// Searchable returns the text of a task as it is indexed, without its name.
func Searchable(t *state.Task) string {
	var parts []string
	add := func(list ...*string) {
		for _, s := range list {
			if s != nil && *s != "" && !slices.Contains(parts, *s) {
				parts = append(parts, *s)
			}
		}
	}
	add(t.Args, t.Kwargs, t.Result, t.Exception, t.Traceback)
	for i := range t.Executions {
		add(t.Executions[i].Result, t.Executions[i].Exception, t.Executions[i].Traceback)
	}
	return Fold(strings.Join(parts, "\n"))
}

// Fold normalizes a text as package query compares texts.
func Fold(s string) string { return strings.ToLower(strings.ToValidUTF8(s, "\ufffd")) }
