package sqlite

import (
	"context"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// trigram is the length in characters of what the index of texts knows.
const trigram = 3

// searchable returns all texts of a task that terms look into, in the form that is indexed. Its name is found
// by other means.
func searchable(t *state.Task) string {
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
	return fold(strings.Join(parts, "\n"))
}

// fold makes texts equal that package query takes as equal, before the index folds them its own way, and
// leaves out what the index ends a text at.
func fold(s string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ToValidUTF8(s, "\ufffd")), "\x00", "")
}

// matching returns the expression in the language of FTS5 that holds where a text may contain one of the
// values, false if the index cannot tell.
func matching(values []query.Value) (string, bool) {
	list := make([]string, len(values))
	for i, v := range values {
		parts := []string{v.Text}
		if v.Match == query.Pattern {
			parts = strings.Split(v.Text, "*")
		}
		var grams []string
		for _, part := range parts {
			grams = appendTrigrams(grams, part)
		}
		if len(grams) == 0 {
			return "", false
		}
		list[i] = "(" + strings.Join(grams, " AND ") + ")"
	}
	return strings.Join(list, " OR "), true
}

// maxTrigrams bounds the parts of one look into the index: more would hardly find less.
const maxTrigrams = 40

// appendTrigrams appends the trigrams of a text as FTS5 strings.
func appendTrigrams(grams []string, text string) []string {
	runes := []rune(fold(text))
	for i := 0; i+trigram <= len(runes) && len(grams) < maxTrigrams; i++ {
		gram := `"` + strings.ReplaceAll(string(runes[i:i+trigram]), `"`, `""`) + `"`
		if !slices.Contains(grams, gram) {
			grams = append(grams, gram)
		}
	}
	return grams
}

// textCondition compiles a term that looks into texts. Rows that are not indexed yet may match.
func (c *compiler) textCondition(ctx context.Context, t query.Term) (condition, error) {
	match, ok := matching(t.Values)
	if !ok {
		return perhaps, nil
	}
	list := []condition{
		{sql: "indexed = 0"},
		{sql: "task < ?", args: []any{lowTask{}}},
		{
			sql:  "task IN (SELECT rowid FROM texts WHERE texts MATCH ? AND rowid BETWEEN ? AND ?)",
			args: []any{match, lowTask{}, highTask{}},
		},
	}
	if t.Field == query.Any {
		other, err := c.identity(ctx, t)
		if err != nil {
			return condition{}, err
		}
		list = append(list, other...)
	}
	return join("OR", list), nil
}

// identity compiles what free text finds beside texts: names that contain it, and ids that begin with it.
func (c *compiler) identity(ctx context.Context, t query.Term) ([]condition, error) {
	named, known, err := c.where(ctx, query.Name, holder(t))
	if err != nil {
		return nil, err
	}
	list := []condition{oneOf("name", named)}
	if !known {
		list[0] = condition{sql: "name IS NOT NULL"}
	}
	for _, v := range t.Values {
		list = append(list, anyCasePrefix(strings.ToLower(v.Text))...)
	}
	return list, nil
}
