package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/tasktext"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// compiler turns queries into conditions: it is the where.Terms of PostgreSQL.
type compiler struct {
	q    tables.Reader
	used map[query.Field][]string // cache of usedValues
}

// Call selects the tasks of a call.
func (*compiler) Call(id state.CallID) where.Condition {
	return where.Exactly("call = ? AND call <> ''", id[:])
}

// IDs compiles values of a column that holds ids.
func (*compiler) IDs(column string, values []query.Value) where.Condition {
	if where.AllExact(values) {
		return where.Exactly(column+" = ANY(?)", textsOf(values))
	}
	is := func(column, id string) where.Condition { return where.Exactly(column+" = ?", id) }
	return where.IDs(column, values, is, begins)
}

func textsOf(values []query.Value) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.Text
	}
	return texts
}

// begins selects texts that begin with another, by a range of an index.
func begins(column, head string) where.Condition {
	runes := []rune(head)
	for len(runes) > 0 && (runes[len(runes)-1] >= '\ud7ff' || !utf8.ValidString(head)) { // what is next is no rune
		runes = runes[:len(runes)-1]
		head = ""
	}
	if len(runes) == 0 {
		return where.AtLeast(column + " IS NOT NULL")
	}
	low := string(runes)
	runes[len(runes)-1]++
	return where.Condition{SQL: column + " >= ? AND " + column + " < ?", Args: []any{low, string(runes)}, Exact: head != ""}
}

// oddID selects ids that are neither in lower nor in upper case, as in the index tasks_odd_ids.
const oddID = `(lower(id) <> id AND upper(id) <> id OR octet_length(id) <> char_length(id))`

// anyID selects ids that begin with a value of query.Any, in whatever case.
func anyID(v query.Value) where.Condition {
	head := v.Text
	if v.Match == query.Pattern {
		head, _, _ = strings.Cut(head, "*")
	}
	list := []where.Condition{where.AtLeast(oddID)}
	for _, text := range []string{strings.ToLower(head), strings.ToUpper(head)} {
		list = append(list, begins("id", text))
	}
	return where.Or(list...)
}

// Word compiles a term on a field of few values: one that is no exact text is compared with those that there are.
func (c *compiler) Word(ctx context.Context, t query.Term) (where.Condition, error) {
	if slices.ContainsFunc(t.Values, where.IsWildcard) {
		return where.Exactly(where.Column(t.Field) + " IS NOT NULL"), nil
	}
	if t.Field != query.State && where.AllExact(t.Values) {
		return oneOf(t.Field, textsOf(t.Values)), nil
	}
	return c.holds(ctx, t.Field, t)
}

// holds selects tasks by those values of a field that match a term.
func (c *compiler) holds(ctx context.Context, f query.Field, t query.Term) (where.Condition, error) {
	used, err := c.usedValues(ctx, f)
	if err != nil || len(used) == maxValues {
		return where.AtLeast(where.Column(f) + " IS NOT NULL"), err
	}
	holds := where.Matcher(t)
	return oneOf(f, slices.DeleteFunc(slices.Clone(used), func(text string) bool { return !holds(text) })), nil
}

// oneOf selects tasks with one of the texts in a field; if that is the name, also as a former name.
func oneOf(f query.Field, texts []string) where.Condition {
	if texts == nil {
		texts = []string{}
	}
	is := where.Exactly(where.Column(f)+" = ANY(?)", texts)
	if where.Column(f) == "name" {
		return where.Or(is, where.Exactly("former IS NOT NULL AND former && ?", texts))
	}
	return is
}

// maxValues is how many values of a field are compared.
const maxValues = 1_000

// hasIndex reports whether an index has the values of a field.
func hasIndex(f query.Field) bool {
	return f == query.State || f == query.Name || f == query.Any || f == query.Worker || f == query.Queue
}

// newestTasks is how many tasks are looked at for values of a field without an index.
const newestTasks = 10_000

// usedValues returns the values of a field, at most maxValues; of one without an index it returns as many as that, so that they
// are not compared.
func (c *compiler) usedValues(ctx context.Context, f query.Field) ([]string, error) {
	if used, ok := c.used[f]; ok {
		return used, nil
	}
	if !hasIndex(f) {
		return make([]string, maxValues), nil
	}
	column := where.Column(f)
	// Each step finds the next value in the index.
	used, err := tables.List[string](ctx, c.q, `WITH RECURSIVE used AS (
			(SELECT `+column+` AS value FROM tasks WHERE `+column+` IS NOT NULL ORDER BY `+column+` LIMIT 1)
			UNION ALL SELECT (SELECT `+column+` FROM tasks WHERE `+column+` > used.value ORDER BY `+column+` LIMIT 1) FROM used WHERE used.value IS NOT NULL
		) SELECT value FROM used WHERE value IS NOT NULL LIMIT ?`, maxValues)
	if err != nil {
		return nil, fmt.Errorf("list values: %w", err)
	}
	if column == "name" {
		former, err := tables.List[string](ctx, c.q, `SELECT DISTINCT unnest(former) FROM tasks WHERE former IS NOT NULL LIMIT ?`, maxValues)
		if err != nil {
			return nil, fmt.Errorf("list former names: %w", err)
		}
		slices.Sort(former)
		for _, name := range former {
			if !slices.Contains(used, name) {
				used = append(used, name)
			}
		}
		used = used[:min(len(used), maxValues)]
	}
	if c.used != nil {
		c.used[f] = used
	}
	return used, nil
}

// Values returns at most limit values of a field of type Word, or State, that contain part, ignoring case.
func (d *DB) Values(ctx context.Context, f query.Field, part string, limit int) (values []string, err error) {
	defer annotate(&err, "list values")
	var used []string
	switch column := where.Column(f); {
	case hasIndex(f):
		c := compiler{q: d.read}
		used, err = c.usedValues(ctx, f)
	case f == query.Client || f == query.Exchange || f == query.RoutingKey:
		used, err = tables.List[string](ctx, d.read, `SELECT DISTINCT `+column+` FROM (SELECT `+column+` FROM tasks ORDER BY clock DESC LIMIT ?) AS newest
			WHERE `+column+` IS NOT NULL`, newestTasks)
	}
	if err != nil {
		return nil, err
	}
	values = []string{}
	for _, text := range used {
		if strings.Contains(strings.ToLower(text), strings.ToLower(part)) {
			values = append(values, text)
		}
	}
	slices.Sort(values)
	return values[:min(limit, len(values))], nil
}

// Words returns values of a field that tasks have, in alphabetical order. Each step finds the next one in the index.
func (d *DB) Words(ctx context.Context, r history.WordRange) (words []string, err error) {
	defer annotate(&err, "list words")
	column := where.Column(r.Field)
	after, order := " > ", " ORDER BY "+column
	if r.Descending {
		after, order = " < ", order+" DESC"
	}
	first := column + after + "?"
	if r.After == "" {
		first = column + " > ?"
	}
	return tables.List[string](ctx, d.read, `WITH RECURSIVE used AS (
			(SELECT `+column+` AS value FROM tasks WHERE `+first+order+` LIMIT 1)
			UNION ALL SELECT (SELECT `+column+` FROM tasks WHERE `+column+after+`used.value`+order+` LIMIT 1) FROM used WHERE used.value > ''
		) SELECT value FROM used WHERE value > '' LIMIT ?`, r.After, r.Limit)
}

// Text compiles a term on texts, which are in the column text, in lower case. Which of them holds it is decided by
// query.Match.
func (c *compiler) Text(ctx context.Context, t query.Term) (where.Condition, error) {
	list := make([]where.Condition, 0, len(t.Values)+1)
	for _, v := range t.Values {
		var likes []where.Condition
		for _, part := range where.Parts(v) {
			if part = like(part); part != "" {
				likes = append(likes, where.AtLeast("text LIKE ?", "%"+part+"%"))
			}
		}
		if len(likes) == 0 {
			return where.Undecided(), nil
		}
		list = append(list, where.And(likes...))
	}
	if t.Field != query.Any {
		return where.Or(list...), nil
	}
	for _, v := range t.Values { // an id, or a part of it
		list = append(list, anyID(v))
	}
	named, err := c.holds(ctx, query.Name, t)
	list = append(list, named)
	texts := where.Or(list...)
	texts.Exact = false
	return texts, err
}

// like returns a text for LIKE: folded as texts are.
func like(part string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(tasktext.Fold(part))
}
