package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// trigram is the length in characters of the tokens of the text index.
const trigram = 3

// searchable returns the text of a task as it is indexed, without its name.
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

// fold normalizes a text as package query compares texts, and removes zero bytes, at which FTS5 ends a text.
func fold(s string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ToValidUTF8(s, "\ufffd")), "\x00", "")
}

const (
	// maxAllTrigrams is how many are all looked for. Of more, it is the rareTrigrams that fewest of sampleTasks have.
	maxAllTrigrams = 8
	rareTrigrams   = 5
	sampleTasks    = 64
	// commonTasks is how many of sampleTasks have a trigram that selects so little that its list is not read beside another.
	commonTasks = sampleTasks / 4
	// maxTrigrams bounds how much of a text is looked for: more would hardly find less.
	maxTrigrams = 60
)

// match returns the FTS5 expression for texts that may contain one of the values, false if there is none.
func (c *compiler) match(ctx context.Context, values []query.Value) (string, bool, error) {
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
			return "", false, nil
		}
		grams, err := c.rarest(ctx, grams)
		if err != nil {
			return "", false, err
		}
		for k, gram := range grams {
			grams[k] = `"` + strings.ReplaceAll(gram, `"`, `""`) + `"`
		}
		list[i] = "(" + strings.Join(grams, " AND ") + ")"
	}
	return strings.Join(list, " OR "), true, nil
}

// appendTrigrams appends the trigrams of a text.
func appendTrigrams(grams []string, text string) []string {
	runes := []rune(fold(text))
	for i := 0; i+trigram <= len(runes) && len(grams) < maxTrigrams; i++ {
		if gram := string(runes[i : i+trigram]); !slices.Contains(grams, gram) {
			grams = append(grams, gram)
		}
	}
	return grams
}

// rarest returns the trigrams that are rarest in the newest tasks. FTS5 reads the list of each trigram it is asked for, and
// common ones make it slow without selecting anything.
func (c *compiler) rarest(ctx context.Context, grams []string) ([]string, error) {
	if len(grams) <= maxAllTrigrams {
		return grams, nil
	}
	if c.sample == nil {
		if err := c.takeSample(ctx); err != nil {
			return nil, err
		}
	}
	tasks := make(map[string]int, len(grams))
	for _, gram := range grams {
		for _, text := range c.sample {
			if strings.Contains(text, gram) {
				tasks[gram]++
			}
		}
	}
	slices.SortStableFunc(grams, func(a, b string) int { return cmp.Compare(tasks[a], tasks[b]) })
	n := 1
	for n < rareTrigrams && tasks[grams[n]] <= commonTasks {
		n++
	}
	return grams[:n], nil
}

// takeSample reads the texts of the newest tasks.
func (c *compiler) takeSample(ctx context.Context) error {
	var reader state.Reader
	c.sample = make([]string, 0, sampleTasks)
	err := eachRow(ctx, c.q, `SELECT id, body FROM (SELECT task, id FROM tasks ORDER BY clock DESC LIMIT ?) JOIN events USING (task)`, []any{sampleTasks}, func(rows *sql.Rows) error {
		var id any
		var events sql.RawBytes
		if err := rows.Scan(&id, &events); err != nil {
			return err
		}
		t, err := reader.Task(idText(id), events)
		if err == nil { // else the sample has one text less
			c.sample = append(c.sample, searchable(&t))
		}
		return nil
	})
	return wrap("sample texts", err)
}

// textCondition compiles a term on texts. Rows that are not indexed yet may match.
func (c *compiler) textCondition(ctx context.Context, t query.Term) (condition, error) {
	match, ok, err := c.match(ctx, t.Values)
	if !ok || err != nil {
		return undecided, err
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
		other, err := c.nameAndIDConditions(ctx, t)
		if err != nil {
			return condition{}, err
		}
		list = append(list, other...)
	}
	return join("OR", list), nil
}

// nameAndIDConditions compiles what free text finds in other columns: names that contain it, and ids that begin with it.
func (c *compiler) nameAndIDConditions(ctx context.Context, t query.Term) ([]condition, error) {
	named, known, err := c.symbolsWhere(ctx, query.Name, matcher(t))
	if err != nil {
		return nil, err
	}
	list := []condition{{sql: "name IS NOT NULL"}}
	if known {
		if list[0], err = c.symbolsCondition(ctx, query.Name, named); err != nil {
			return nil, err
		}
	}
	for _, v := range t.Values {
		list = append(list, anyCasePrefix(strings.ToLower(v.Text))...)
	}
	return list, nil
}
