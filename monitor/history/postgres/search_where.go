package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/tasktext"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

// condition is a part of a WHERE clause on tasks. One that is not exact selects more tasks than match, never fewer.
type condition struct {
	sql   string
	args  []any
	exact bool
}

var (
	always    = condition{sql: "TRUE", exact: true}  //nolint:gochecknoglobals // a constant
	never     = condition{sql: "FALSE", exact: true} //nolint:gochecknoglobals // a constant
	undecided = condition{sql: "TRUE"}               //nolint:gochecknoglobals // a constant
)

// join joins conditions by AND or OR.
func join(operator string, list []condition) condition {
	switch len(list) {
	case 0:
		if operator == "AND" {
			return always
		}
		return never
	case 1:
		return list[0]
	}
	joined := condition{exact: true}
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = "(" + c.sql + ")"
		joined.args = append(joined.args, c.args...)
		joined.exact = joined.exact && c.exact
	}
	joined.sql = strings.Join(parts, " "+operator+" ")
	return joined
}

// compiler turns queries into conditions.
type compiler struct {
	q    tables.Reader
	now  time.Time
	used map[query.Field][]string // cache of usedValues
}

// expr compiles an expression.
func (c *compiler) expr(ctx context.Context, e query.Expr) (condition, error) {
	switch e := e.(type) {
	case query.And:
		return c.all(ctx, "AND", e)
	case query.Or:
		return c.all(ctx, "OR", e)
	case query.Not:
		x, err := c.expr(ctx, e.X)
		if err != nil || !x.exact {
			return undecided, err
		}
		x.sql = "(" + x.sql + ") IS NOT TRUE"
		return x, nil
	case query.Term:
		return c.term(ctx, e)
	default:
		return undecided, nil
	}
}

func (c *compiler) all(ctx context.Context, operator string, list []query.Expr) (condition, error) {
	conditions := make([]condition, len(list))
	for i, x := range list {
		var err error
		if conditions[i], err = c.expr(ctx, x); err != nil {
			return condition{}, err
		}
	}
	return join(operator, conditions), nil
}

func (c *compiler) term(ctx context.Context, t query.Term) (condition, error) {
	column := columnOf(t.Field)
	switch {
	case t.Field == query.ID || t.Field == query.Parent:
		return idCondition(column, t.Values), nil
	case t.Field == query.Root:
		return join("OR", []condition{idCondition(column, t.Values), idCondition("id", t.Values)}), nil
	case t.Field == query.Failure:
		return failureCondition(t.Values), nil
	case t.Field == query.State || t.Field.Type() == query.Word:
		return c.wordCondition(ctx, t)
	case t.Field == query.Is:
		return isCondition(t.Values), nil
	case t.Field == query.Dup:
		return dupCondition(t.Values), nil
	case t.Field == query.Outbox || t.Field.Causal():
		return never, nil // not resolved
	case t.Field.Type() == query.Text:
		return c.textCondition(ctx, t)
	default:
		return c.rangeCondition(column, t.Values), nil
	}
}

// columnOf returns the column of tasks that a field is in: the one of its name.
func columnOf(f query.Field) string {
	if f == query.Any {
		return "name"
	}
	return f.String()
}

func (c *compiler) rangeCondition(column string, values []query.Value) condition {
	list := make([]condition, len(values))
	for i, v := range values {
		ends := []condition{{sql: column + " IS NOT NULL", exact: true}}
		if v.Min.Set {
			ends = append(ends, condition{column + operator(">", v.Min), []any{v.Min.At(c.now)}, true})
		}
		if v.Max.Set {
			ends = append(ends, condition{column + operator("<", v.Max), []any{v.Max.At(c.now)}, true})
		}
		if column == "updated" {
			ends = append(ends, condition{sql: "updated <> 0", exact: true})
		}
		list[i] = join("AND", ends)
	}
	return join("OR", list)
}

func operator(than string, b query.Bound) string {
	if b.Exclusive {
		return " " + than + " ?"
	}
	return " " + than + "= ?"
}

// isCondition compiles values of query.Is.
func isCondition(values []query.Value) condition {
	list := make([]condition, 0, len(values))
	for _, v := range values {
		switch v.Text {
		case query.IsActive:
			list = append(list, condition{sql: "final = 0", exact: true})
		case query.IsFinished:
			list = append(list, condition{sql: "final <> 0", exact: true})
		default:
			list = append(list, condition{"flags <> 0 AND flags & ? <> 0", []any{isFlags(v.Text)}, true})
		}
	}
	return join("OR", list)
}

// dupCondition compiles values of query.Dup.
func dupCondition(values []query.Value) condition {
	var list []condition
	var marks state.Duplicates
	for _, v := range values {
		if call, ok := state.ParseCallID(v.Text); ok {
			list = append(list, condition{"call = ? AND call <> ''", []any{call[:]}, true})
		}
		marks |= query.DupMarks(v.Text)
	}
	if marks != 0 {
		list = append(list, condition{"dup <> 0 AND dup & ? <> 0", []any{int64(marks)}, true})
	}
	return join("OR", list)
}

// isWildcard reports whether a value matches every text.
func isWildcard(v query.Value) bool { return v.Match == query.Pattern && v.Text == "*" }

// idCondition compiles values of a column that holds ids.
func idCondition(column string, values []query.Value) condition {
	var exact []string
	var list []condition
	for _, v := range values {
		switch {
		case v.Match == query.Exact:
			exact = append(exact, v.Text)
		case isWildcard(v):
			list = append(list, condition{sql: column + " IS NOT NULL", exact: true})
		case v.Match == query.Pattern:
			head, rest, _ := strings.Cut(v.Text, "*")
			c := begins(column, head)
			c.exact = c.exact && rest == ""
			list = append(list, c)
		default:
			list = append(list, condition{sql: column + " IS NOT NULL"})
		}
	}
	if exact != nil {
		list = append(list, condition{column + " = ANY(?)", []any{exact}, true})
	}
	return join("OR", list)
}

// begins selects texts that begin with another, by a range of an index.
func begins(column, head string) condition {
	runes := []rune(head)
	for len(runes) > 0 && (runes[len(runes)-1] >= '\ud7ff' || !utf8.ValidString(head)) { // what is next is no rune
		runes = runes[:len(runes)-1]
		head = ""
	}
	if len(runes) == 0 {
		return condition{sql: column + " IS NOT NULL"}
	}
	low := string(runes)
	runes[len(runes)-1]++
	return condition{column + " >= ? AND " + column + " < ?", []any{low, string(runes)}, head != ""}
}

// oddID selects ids that are neither in lower nor in upper case, as in the index tasks_odd_ids.
const oddID = `(lower(id) <> id AND upper(id) <> id OR octet_length(id) <> char_length(id))`

// anyID selects ids that begin with a value of query.Any, in whatever case.
func anyID(v query.Value) condition {
	head := v.Text
	if v.Match == query.Pattern {
		head, _, _ = strings.Cut(head, "*")
	}
	list := []condition{{sql: oddID}}
	for _, text := range []string{strings.ToLower(head), strings.ToUpper(head)} {
		list = append(list, begins("id", text))
	}
	return join("OR", list)
}

// failureCondition compiles ids of failure groups.
func failureCondition(values []query.Value) condition {
	list := make([]condition, len(values))
	for i, v := range values {
		id, ok := fingerprint.ParseID(v.Text)
		switch {
		case v.Match == query.Exact && ok:
			list[i] = condition{"failure = ?", []any{int64(id)}, true}
		case v.Match == query.Exact:
			list[i] = never
		default:
			list[i] = condition{sql: "failure IS NOT NULL", exact: isWildcard(v)}
		}
	}
	return join("OR", list)
}

// wordCondition compiles a term on a field of few values: one that is no exact text is compared with those that there are.
func (c *compiler) wordCondition(ctx context.Context, t query.Term) (condition, error) {
	column := columnOf(t.Field)
	if slices.ContainsFunc(t.Values, isWildcard) {
		return condition{sql: column + " IS NOT NULL", exact: true}, nil
	}
	var texts []string
	if t.Field != query.State && !slices.ContainsFunc(t.Values, func(v query.Value) bool { return v.Match != query.Exact }) {
		for _, v := range t.Values {
			texts = append(texts, v.Text)
		}
	} else {
		used, err := c.usedValues(ctx, t.Field)
		if err != nil || len(used) == maxValues {
			return condition{sql: column + " IS NOT NULL"}, err
		}
		holds := matcher(t)
		texts = slices.DeleteFunc(slices.Clone(used), func(text string) bool { return !holds(text) })
	}
	return oneOf(t.Field, texts), nil
}

// oneOf selects tasks with one of the texts in a field; if that is the name, also as a former name.
func oneOf(f query.Field, texts []string) condition {
	if texts == nil {
		texts = []string{}
	}
	is := condition{columnOf(f) + " = ANY(?)", []any{texts}, true}
	if columnOf(f) == "name" {
		return join("OR", []condition{is, {"former IS NOT NULL AND former && ?", []any{texts}, true}})
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
	column := columnOf(f)
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
	switch column := columnOf(f); {
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

// textCondition compiles a term on texts, which are in the column text, in lower case. Which of them holds it is decided by
// query.Match.
func (c *compiler) textCondition(ctx context.Context, t query.Term) (condition, error) {
	list := make([]condition, 0, len(t.Values)+1)
	for _, v := range t.Values {
		parts := []string{v.Text}
		if v.Match == query.Pattern {
			parts = strings.Split(v.Text, "*")
		}
		var likes []condition
		for _, part := range parts {
			if part = like(part); part != "" {
				likes = append(likes, condition{"text LIKE ?", []any{"%" + part + "%"}, false})
			}
		}
		if len(likes) == 0 {
			return undecided, nil
		}
		list = append(list, join("AND", likes))
	}
	if t.Field != query.Any {
		return join("OR", list), nil
	}
	for _, v := range t.Values { // an id, or a part of it
		list = append(list, anyID(v))
	}
	named, err := c.nameHolds(ctx, t)
	list = append(list, named)
	texts := join("OR", list)
	texts.exact = false
	return texts, err
}

// like returns a text for LIKE: folded as texts are.
func like(part string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(tasktext.Fold(part))
}

// nameHolds selects tasks whose name matches a term of query.Any.
func (c *compiler) nameHolds(ctx context.Context, t query.Term) (condition, error) {
	used, err := c.usedValues(ctx, query.Name)
	if err != nil || len(used) == maxValues {
		return condition{sql: "name IS NOT NULL"}, err
	}
	holds := matcher(t)
	return oneOf(query.Name, slices.DeleteFunc(slices.Clone(used), func(text string) bool { return !holds(text) })), nil
}

// matcher returns a function that reports whether a term matches a task with a text in its field.
func matcher(t query.Term) func(text string) bool {
	q := query.New(t)
	switch t.Field {
	case query.State, query.Is: // values that the state decides
		return func(text string) bool { return q.Match(&state.Task{State: state.State(text)}, time.Time{}) }
	case query.Any: // all texts are compared alike
		return matcher(query.Term{Field: query.Args, Values: t.Values})
	case query.Args:
		return func(text string) bool { return q.Match(&state.Task{Args: &text}, time.Time{}) }
	default: // words too
		q = query.New(query.Term{Field: query.Name, Values: t.Values})
		return func(text string) bool { return q.Match(&state.Task{Name: &text}, time.Time{}) }
	}
}
